"""Jelly: a frame for each message, a dataset with the same statements as N-Quads have.

Where to resume, and what is about the connection itself, stand in the metadata of frames.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import orjson

from triplewire.edge.formats.ports import Format
from triplewire.edge.formats.rdf import Rdf
from triplewire.rdf import N_QUADS
from triplewire.rdf.jelly import MEDIA_TYPE, encode_frame


class Jelly(Rdf):
    """Metadata have `type`, what the message is, and `data`, what is said of it, as JSON. An empty frame says
    nothing."""

    comment = b"\x00"

    def __init__(self, *, marks: bool = False) -> None:
        super().__init__("jelly", N_QUADS, marks=marks)

    @property
    def media_type(self) -> str:
        return MEDIA_TYPE

    @cached_property
    def marked(self) -> Format:
        return Jelly(marks=True)

    def _message(self, name: str, fields: Mapping[str, Any], statements: str) -> bytes:
        return encode_frame(statements, {"type": name.encode(), "data": orjson.dumps(fields)})


JELLY = Jelly()
