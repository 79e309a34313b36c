"""Drafts: what somebody says about a stream, checked once, here."""

from __future__ import annotations

from typing import Any

import orjson

from triplewire.config import limits
from triplewire.model.errors import BadRequest, InvalidField
from triplewire.rdf import check_id
from triplewire.storage.registry.streams import StreamDescription

FIELDS = ("title", "description", "licence", "keywords", "version_of")


def drafted(body: bytes) -> StreamDescription:
    """Of a JSON object. Raises BadRequest, or Unfit for a field."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object")
    if unknown := next((name for name in value if name not in FIELDS), None):
        raise InvalidField(unknown, f"{unknown!r} is not known; there are {', '.join(FIELDS)}")
    texts = {name: _text(name, value.get(name)) for name in ("title", "description")}
    addresses = {name: _address(name, value.get(name)) for name in ("licence", "version_of")}
    return StreamDescription(**texts, **addresses, keywords=_keywords(value.get("keywords", [])))


def _text(name: str, value: Any) -> str | None:  # noqa: ANN401 - whatever was sent
    if value is not None and (not isinstance(value, str) or not 0 < len(value) <= limits.ABOUT_CHARACTERS):
        raise InvalidField(name, f"{name} must be a text of 1 to {limits.ABOUT_CHARACTERS} characters")
    if value is not None and any(0xD800 <= ord(each) <= 0xDFFF for each in value):
        raise InvalidField(name, f"{name} holds what is no character")
    return value


def _address(name: str, value: Any) -> str | None:  # noqa: ANN401
    text = _text(name, value)
    try:
        return None if text is None else check_id(text)
    except BadRequest as error:
        raise InvalidField(name, f"{name} must be an absolute IRI: {error}") from None


def _keywords(value: Any) -> tuple[str, ...]:  # noqa: ANN401
    if not isinstance(value, list) or len(value) > limits.ABOUT_KEYWORDS or None in value:
        raise InvalidField("keywords", f"keywords must be a list of at most {limits.ABOUT_KEYWORDS} texts")
    return tuple(_text("keywords", each) or "" for each in value)
