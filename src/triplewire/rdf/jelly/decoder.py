"""The Jelly decoder: frames to N-Quads by the format's own library, which is slow to load and imported only where
Jelly arrives.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from google.protobuf.message import DecodeError
from pyjelly import jelly
from pyjelly.parse.decode import Adapter, Decoder, ParserOptions, options_from_frame

from triplewire.model.errors import BadRequest, BodyTooLarge
from triplewire.model.terms import XSD_STRING, literal
from triplewire.rdf.checks import EXPANDED_BYTES

JELLY_ENTRY_CHARACTERS: Final = 4 * 1024
"""One entry in a lookup table of Jelly. A stream has three tables of 4,096: at worst 50 MB."""


_FLAT = (
    jelly.LOGICAL_STREAM_TYPE_UNSPECIFIED,
    jelly.LOGICAL_STREAM_TYPE_FLAT_TRIPLES,
    jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS,
)
_ENTRIES = ("name", "prefix", "datatype")
_BAD_IN_IRIS = re.compile(r'[\x00-\x20<>"{}|^`\\]')
_BAD_IN_TAGS = re.compile(r"[^A-Za-z0-9-]")
_FAULTS = (DecodeError, AssertionError, LookupError, ValueError, TypeError, RuntimeError, AttributeError)
"""Errors of the library for malformed frames."""


class JellyDecoder:
    """Decodes the frames of one stream, in order."""

    def __init__(self) -> None:
        self._decoder: Decoder | None = None
        self.grouped = False
        """Whether a frame is a message; known after the first frame."""

    def decode(self, frame: bytes) -> str:
        """Return the statements of a frame as N-Quads, not yet checked. Raises BadRequest or BodyTooLarge."""
        try:
            parsed = jelly.RdfStreamFrame.FromString(frame)
            _check_entries(parsed)
            decoder = self._begin(parsed) if self._decoder is None else self._decoder
            adapter: Any = decoder.adapter
            adapter.size = 0
            return "".join(line for line in decoder.iter_rows(parsed) if line)
        except _FAULTS as error:
            raise BadRequest(f"this is not valid Jelly: {error or type(error).__name__}") from None

    def _begin(self, frame: jelly.RdfStreamFrame) -> Decoder:
        if not frame.rows or frame.rows[0].WhichOneof("row") != "options":
            raise BadRequest("this is not valid Jelly: its first row must be the options of the stream")
        options = options_from_frame(frame, delimited=True)
        self.grouped = options.stream_types.logical_type not in _FLAT
        self._decoder = Decoder(_Lines(options))
        return self._decoder


def _check_entries(frame: jelly.RdfStreamFrame) -> None:
    """Limit entries, which are kept for as long as the stream lasts."""
    for row in frame.rows:
        kind = row.WhichOneof("row")
        if kind in _ENTRIES and len(getattr(row, kind).value) > JELLY_ENTRY_CHARACTERS:
            raise BodyTooLarge("an entry in a table of Jelly", JELLY_ENTRY_CHARACTERS)


class _Lines(Adapter):  # type: ignore[misc]
    """Writes terms and statements as N-Quads; `size` counts the characters of the frame so far.

    Malformed terms are written so that the parser refuses them.
    """

    def __init__(self, options: ParserOptions) -> None:
        super().__init__(options)
        self.size = 0
        self._graph = ""

    def iri(self, iri: str) -> str:
        return self._count(f"<{_BAD_IN_IRIS.sub(_escaped, iri)}>")

    def bnode(self, bnode: str) -> str:
        return self._count(f"_:x{bnode.encode().hex()}")

    def literal(self, lex: str, language: str | None = None, datatype: str | None = None) -> str:
        tag = None if language is None else _BAD_IN_TAGS.sub("?", language)
        type = XSD_STRING if datatype is None else _BAD_IN_IRIS.sub(_escaped, datatype)
        return self._count(literal(lex, type, tag))

    def default_graph(self) -> str:
        return ""

    def quoted_triple(self, terms: Iterable[str]) -> str:
        return self._count(f"<<( {' '.join(terms)} )>>")

    def triple(self, terms: Iterable[str]) -> str:
        return self._count(f"{' '.join(terms)} {self._graph} .\n")

    def quad(self, terms: Iterable[str]) -> str:
        return self._count(f"{' '.join(terms)} .\n")

    def graph_start(self, graph_id: str) -> None:
        self._graph = graph_id

    def graph_end(self) -> None:
        self._graph = ""

    def namespace_declaration(self, name: str, iri: str) -> str:
        return ""

    def _count(self, text: str) -> str:
        self.size += len(text)
        if self.size > EXPANDED_BYTES:
            raise BodyTooLarge("a frame of Jelly, expanded,", EXPANDED_BYTES)
        return text


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04X}"
