"""Streams: what their names may be."""

from __future__ import annotations

from triplewire.config import limits
from triplewire.errors import BadRequest
from triplewire.model.streams import NAME


def stream_name(text: str) -> str:
    """The name, if it is one: it stands in addresses, so that nothing in it ever needs to be escaped."""
    if len(text) > limits.STREAM_NAME_CHARACTERS:
        raise BadRequest(f"a stream's name has at most {limits.STREAM_NAME_CHARACTERS} characters, not {len(text)}")
    if not NAME.fullmatch(text):
        raise BadRequest(f"{text!r} is no stream's name: letters, digits and . _ ~ - are, a letter or digit first")
    return text
