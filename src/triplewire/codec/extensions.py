"""Extensions: headers of the publisher's own, which are stored and sent on with an event."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from triplewire.config import limits
from triplewire.model.errors import BadRequest

NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
OWN = ("event-id", "source-id", "syntax", "application-id", "timestamp", "body-length")
"""Headers of items that mean something already, in small letters."""


def extension(name: str, value: str) -> tuple[str, str]:
    """A header of the publisher's own, if it is one that may be stored and sent on. Raises BadRequest."""
    if not NAME.fullmatch(name) or len(name) > limits.EXTENSION_NAME_CHARACTERS or name.lower() in OWN:
        raise BadRequest(f"{name[:60]!r} is no name for a header of one's own; letters, digits and - are")
    if len(value) > limits.HEADER_CHARACTERS or not value.isprintable():
        # A line end in it would begin another header for whoever reads it next.
        raise BadRequest(f"the header {name} holds printable text, at most {limits.HEADER_CHARACTERS} characters")
    return name, value.strip()


def to_json(extensions: Mapping[str, str]) -> str | None:
    """As log and lake keep them; None where there are none."""
    return orjson.dumps(dict(extensions)).decode() if extensions else None


def from_json(name: str, text: str | None) -> dict[str, str]:
    """What `to_json` made. Raises BadRequest, which says what `name` must be, for what may not be stored."""
    try:
        found = orjson.loads(text) if text is not None else {}
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or len(found) > limits.EXTENSIONS or not all(map(_is_text, found.values())):
        raise BadRequest(f"{name} must be a JSON object of at most {limits.EXTENSIONS} texts, not {str(text)[:60]}")
    return dict(extension(*each) for each in found.items())


def _is_text(value: object) -> bool:
    return isinstance(value, str)
