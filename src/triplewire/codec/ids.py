"""Ids of events: absolute IRIs, which name the graph of the event's quads."""

from __future__ import annotations

import uuid

import pyoxigraph as ox

from triplewire.config import limits
from triplewire.errors import BadRequest


def new_id() -> str:
    """An id that no other event has."""
    return f"urn:uuid:{uuid.uuid4()}"


def check_id(text: str) -> str:
    """The id, if it is one: an absolute IRI of bounded length. Raises BadRequest."""
    if len(text) > limits.HEADER_CHARACTERS:
        raise BadRequest(f"the event id {text[:60]}… is longer than the limit of {limits.HEADER_CHARACTERS} characters")
    try:
        return ox.NamedNode(text).value
    except ValueError as error:
        raise BadRequest(
            f"{text!r} is no event id ({error}); use an absolute IRI such as urn:uuid:… or https://example.org/event/1"
        ) from None
