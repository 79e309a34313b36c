"""Result formats and content negotiation: SPARQL result sets as JSON, XML, CSV and TSV, graphs in RDF syntaxes.

In JSON the bodies of literals are copied, because their escapes are those of JSON. In XML a character that XML 1.0
cannot hold becomes U+FFFD. CSV has the text of terms alone: unbound is an empty field, an empty text a quoted one. TSV
has terms in canonical text, which holds no raw tab and no raw newline. Pieces of one graph form one document: a subject
that continues in the next piece is named again, which all syntaxes allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.history.formats.columns import (
    CellWriters,
    TermColumn,
    TermKind,
    binary_columns,
    concatenate,
    drop_prefix,
    join_columns,
    join_texts,
    split_batches,
    split_tagged,
    split_triples,
    split_typed,
    stream_document,
    strip_delimiters,
    unescape,
    write_cells,
)
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf import JSON_LD, N_TRIPLES, RDF_XML, TURTLE, Syntax
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.syntaxes import choose_offer


@dataclass(frozen=True)
class SolutionWriter:
    """A result format for SELECT and ASK, written a batch at a time.

    Columns `v0`, `v1`, … of a batch hold the terms of the variables, in their order.
    """

    head: Callable[[Sequence[str]], bytes]
    body: Callable[[Sequence[str], pa.RecordBatch], bytes]
    boolean: Callable[[bool], bytes]
    separator: bytes = b""
    """Stands between two bodies."""
    tail: bytes = b""

    def write(self, form: str, names: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        if form == "select":
            bodies = (self.body(names, piece) for piece in split_batches(batches))
            return stream_document(self.head(names), bodies, self.tail, self.separator)
        return self._write_boolean(batches)

    def _write_boolean(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        yield self.boolean(any(any(batch.column(0).to_pylist()) for batch in batches))


FEW_CELLS = 512
"""Cells of an answer that are written one by one."""

_JSON_UNSAFE = r'["\\\x00-\x1f]'
_UNSAFE = re.compile(_JSON_UNSAFE)


def _json_head(names: Sequence[str]) -> bytes:
    return orjson.dumps({"head": {"vars": list(names)}})[:-1] + b',"results":{"bindings":[\n'


def _json_boolean(truth: bool) -> bytes:
    return orjson.dumps({"head": {}, "boolean": truth}) + b"\n"


def _json_body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    if batch.num_rows * len(names) <= FEW_CELLS:
        return _json_rows(names, batch)
    return _json_columns(names, batch)


def _json_rows(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    """Write cell by cell: for a few, each call on a column costs more than all of them."""
    keys = [f"{orjson.dumps(name).decode()}:" for name in names]
    columns = [batch.column(index).cast(pa.string()).to_pylist() for index in range(len(names))]
    rows = zip(*columns, strict=True) if columns else ((),) * batch.num_rows
    solutions = (",".join(key + _json_cell(each) for key, each in zip(keys, row, strict=True) if each) for row in rows)
    return ",\n".join(f"{{{each}}}" for each in solutions).encode()


def _json_cell(term: str) -> str:
    """Write a term of the usual kinds as the columns of them are written; any other as a column of one."""
    end = term[-1]
    if end == ">" and term[0] == "<" and term[1] != "<" and not _UNSAFE.search(term):
        return f'{{"type":"uri","value":"{term[1:-1]}"}}'
    if term[0] == '"':
        body, _, datatype = term[1:].rpartition('"')
        if end == '"':
            return f'{{"type":"literal","value":"{body}"}}'
        if end == ">" and not _UNSAFE.search(datatype):
            return f'{{"type":"literal","value":"{body}","datatype":"{datatype[3:-1]}"}}'
    cell: bytes = write_cells(pa.array([term.encode()], pa.binary()), _JSON_CELLS)[0].as_py()
    return cell.decode()


def _json_columns(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    keys = [b"," + orjson.dumps(name) + b":" for name in names]
    columns = binary_columns(batch, len(names))
    members = [concatenate(key, write_cells(column, _JSON_CELLS)) for key, column in zip(keys, columns, strict=True)]
    solutions = concatenate(b"{", drop_prefix(join_columns(members, b"", batch.num_rows), 1), b"}")
    return join_texts(solutions, b",\n")


def _json_text(texts: TermColumn) -> TermColumn:
    """Escape IRIs, labels and tags. Nothing in them needs it unless a term is malformed."""
    mask = pc.match_substring_regex(texts, _JSON_UNSAFE)
    if not pc.any(mask).as_py():
        return texts
    unsafe = texts.filter(mask).to_pylist()
    escaped = pa.array([orjson.dumps(text.decode())[1:-1] for text in unsafe], pa.binary())
    return pc.replace_with_mask(texts, mask, escaped)


def _json_typed(terms: TermColumn) -> TermColumn:
    bodies, datatypes = split_typed(terms)
    return concatenate(b'{"type":"literal","value":"', bodies, b'","datatype":"', _json_text(datatypes), b'"}')


def _json_tagged(terms: TermColumn) -> TermColumn:
    bodies, tags = split_tagged(terms)
    tags = pc.replace_substring(_json_text(tags), "--", '","its:dir":"', max_replacements=1)
    return concatenate(b'{"type":"literal","value":"', bodies, b'","xml:lang":"', tags, b'"}')


def _json_triple(terms: TermColumn) -> TermColumn:
    subjects, predicates, objects = (write_cells(part, _JSON_CELLS) for part in split_triples(terms))
    opening = b'{"type":"triple","value":{"subject":'
    return concatenate(opening, subjects, b',"predicate":', predicates, b',"object":', objects, b"}}")


_JSON_CELLS: CellWriters = {
    TermKind.IRI: lambda terms: concatenate(b'{"type":"uri","value":"', _json_text(strip_delimiters(terms)), b'"}'),
    TermKind.BLANK: lambda terms: concatenate(b'{"type":"bnode","value":"', _json_text(drop_prefix(terms, 2)), b'"}'),
    TermKind.PLAIN: lambda terms: concatenate(b'{"type":"literal","value":"', strip_delimiters(terms), b'"}'),
    TermKind.TYPED: _json_typed,
    TermKind.TAGGED: _json_tagged,
    TermKind.TRIPLE: _json_triple,
}

JSON = SolutionWriter(_json_head, _json_body, _json_boolean, b",\n", b"\n]}}\n")

_XML_START = b'<?xml version="1.0" encoding="UTF-8"?>\n<sparql xmlns="http://www.w3.org/2005/sparql-results#">\n<head>'
_XML_ITS = '" xmlns:its="http://www.w3.org/2005/11/its" its:version="2.0" its:dir="'

_XML_MARKUP = r'[&<>"\r\n\t]'
_XML_ENTITIES = (
    ("&", "&amp;"),
    ("<", "&lt;"),
    (">", "&gt;"),
    ('"', "&quot;"),
    ("\r", "&#13;"),
    ("\n", "&#10;"),
    ("\t", "&#9;"),
)
_XML_MARGIN = r"^ | $"
"""Spaces that some parsers take for indentation."""
_XML_FORBIDDEN = r"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]"


def _xml_head(names: Sequence[str]) -> bytes:
    variables = b"".join(b"<variable name=%b/>" % quoteattr(name).encode() for name in names)
    return _XML_START + variables + b"</head>\n<results>\n"


def _xml_boolean(truth: bool) -> bytes:
    return _XML_START + b"</head>\n<boolean>%b</boolean>\n</sparql>\n" % (b"true" if truth else b"false")


def _xml_body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    openings = [b"<binding name=%b>" % quoteattr(name).encode() for name in names]
    bindings = [
        concatenate(opening, write_cells(column, _XML_CELLS), b"</binding>")
        for opening, column in zip(openings, binary_columns(batch, len(names)), strict=True)
    ]
    solutions = concatenate(b"<result>", join_columns(bindings, b"", batch.num_rows), b"</result>\n")
    return join_texts(solutions, b"")


def _xml_text(texts: TermColumn) -> TermColumn:
    """Escape text for elements and attributes alike, in one of which a parser would normalize line ends and tabs."""
    if pc.any(pc.match_substring_regex(texts, _XML_FORBIDDEN)).as_py():
        texts = pc.replace_substring_regex(texts, _XML_FORBIDDEN, b"\xef\xbf\xbd")
    if pc.any(pc.match_substring_regex(texts, _XML_MARKUP)).as_py():
        for character, entity in _XML_ENTITIES:
            texts = pc.replace_substring(texts, character, entity)
    if pc.any(pc.match_substring_regex(texts, _XML_MARGIN)).as_py():
        texts = pc.replace_substring_regex(texts, _XML_MARGIN, "&#32;")
    return texts


def _xml_typed(terms: TermColumn) -> TermColumn:
    bodies, datatypes = split_typed(terms)
    return concatenate(b'<literal datatype="', _xml_text(datatypes), b'">', _xml_text(unescape(bodies)), b"</literal>")


def _xml_tagged(terms: TermColumn) -> TermColumn:
    bodies, tags = split_tagged(terms)
    tags = pc.replace_substring(_xml_text(tags), "--", _XML_ITS, max_replacements=1)
    return concatenate(b'<literal xml:lang="', tags, b'">', _xml_text(unescape(bodies)), b"</literal>")


def _xml_triple(terms: TermColumn) -> TermColumn:
    subjects, predicates, objects = (write_cells(part, _XML_CELLS) for part in split_triples(terms))
    inside = (subjects, b"</subject><predicate>", predicates, b"</predicate><object>", objects)
    return concatenate(b"<triple><subject>", *inside, b"</object></triple>")


_XML_CELLS: CellWriters = {
    TermKind.IRI: lambda terms: concatenate(b"<uri>", _xml_text(strip_delimiters(terms)), b"</uri>"),
    TermKind.BLANK: lambda terms: concatenate(b"<bnode>", _xml_text(drop_prefix(terms, 2)), b"</bnode>"),
    TermKind.PLAIN: lambda terms: concatenate(
        b"<literal>", _xml_text(unescape(strip_delimiters(terms))), b"</literal>"
    ),
    TermKind.TYPED: _xml_typed,
    TermKind.TAGGED: _xml_tagged,
    TermKind.TRIPLE: _xml_triple,
}

XML = SolutionWriter(_xml_head, _xml_body, _xml_boolean, tail=b"</results>\n</sparql>\n")

_CSV_NEEDS_QUOTES = r'[",\r\n]|^$'


def _csv_body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    fields = [write_cells(column, _CSV_CELLS) for column in binary_columns(batch, len(names))]
    return join_texts(concatenate(join_columns(fields, b",", batch.num_rows), b"\r\n"), b"")


def _csv_field(texts: TermColumn) -> TermColumn:
    mask = pc.match_substring_regex(texts, _CSV_NEEDS_QUOTES)
    if not pc.any(mask).as_py():
        return texts
    quoted = concatenate(b'"', pc.replace_substring(texts.filter(mask), '"', '""'), b'"')
    return pc.replace_with_mask(texts, mask, quoted)


_CSV_CELLS: CellWriters = {
    TermKind.IRI: lambda terms: _csv_field(strip_delimiters(terms)),
    TermKind.BLANK: _csv_field,
    TermKind.PLAIN: lambda terms: _csv_field(unescape(strip_delimiters(terms))),
    TermKind.TYPED: lambda terms: _csv_field(unescape(split_typed(terms)[0])),
    TermKind.TAGGED: lambda terms: _csv_field(unescape(split_tagged(terms)[0])),
    TermKind.TRIPLE: _csv_field,
}

CSV = SolutionWriter(
    head=lambda names: ",".join(names).encode() + b"\r\n",
    body=_csv_body,
    boolean=lambda truth: b"true\r\n" if truth else b"false\r\n",
)


def _tsv_body(names: Sequence[str], batch: pa.RecordBatch) -> bytes:
    texts = join_columns(binary_columns(batch, len(names)), b"\t", batch.num_rows)
    return join_texts(concatenate(texts, b"\n"), b"")


TSV = SolutionWriter(
    head=lambda names: "\t".join(f"?{name}" for name in names).encode() + b"\n",
    body=_tsv_body,
    boolean=lambda truth: b"true\n" if truth else b"false\n",
)


# Result formats and content negotiation; graphs as N-Triples, Turtle, JSON-LD and RDF/XML.
#
Batches: TypeAlias = Iterator[pa.RecordBatch]

SOLUTIONS = frozenset({"select", "ask"})
GRAPHS = frozenset({"construct", "describe"})


@dataclass(frozen=True)
class ResultFormat:
    """A format of answers. The first of its media types is the one that is sent."""

    name: str
    media_types: tuple[str, ...]
    forms: frozenset[str]
    write: Callable[[str, Sequence[str], Batches], Iterator[bytes]]
    """From the form of the query, the names of its variables and its batches to pieces of text."""

    @property
    def content_type(self) -> str:
        media_type = self.media_types[0]
        return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def _solutions(name: str, writer: SolutionWriter, *media_types: str) -> ResultFormat:
    return ResultFormat(name, media_types, SOLUTIONS, writer.write)


def _graph(name: str, syntax: Syntax, *media_types: str) -> ResultFormat:
    return ResultFormat(name, media_types, GRAPHS, lambda form, names, batches: _write_graph(syntax, batches))


def _write_graph(syntax: Syntax, batches: Batches) -> Iterator[bytes]:
    """Write the triples `subject`, `predicate`, `object` of the batches."""
    pieces = (_ntriples(piece) for piece in split_batches(batches))
    if syntax == N_TRIPLES:
        return pieces
    frame = find_frame(syntax)
    return stream_document(frame.head, (write_fragment(each, syntax) for each in pieces), frame.tail, frame.separator)


def _ntriples(batch: pa.RecordBatch) -> bytes:
    subjects, predicates, objects = binary_columns(batch, 3)
    return join_texts(concatenate(subjects, b" ", predicates, b" ", objects, b" .\n"), b"")


FORMATS = (
    _solutions("json", JSON, "application/sparql-results+json", "application/json"),
    _solutions("xml", XML, "application/sparql-results+xml", "application/xml", "text/xml"),
    _solutions("csv", CSV, "text/csv"),
    _solutions("tsv", TSV, "text/tab-separated-values"),
    _graph("turtle", TURTLE, "text/turtle", "application/x-turtle"),
    _graph("ntriples", N_TRIPLES, "application/n-triples", "text/plain"),
    _graph("jsonld", JSON_LD, "application/ld+json", "application/json"),
    _graph("rdfxml", RDF_XML, "application/rdf+xml", "application/xml", "text/xml"),
)
"""The first format for a form is the default."""


def choose_format(form: str, accept: str | None, name: str | None = None) -> ResultFormat:
    """Return the format named, by its short name or a media type, else the one that the Accept header prefers.

    Among equals the header's order decides, then that of FORMATS. Raises NotAcceptable or BadRequest.
    """
    offers = tuple(each for each in FORMATS if form in each.forms)
    if name is not None:
        return _find_named(name, form, offers)
    best = choose_offer(accept, [each.media_types for each in offers])
    if best is None:
        raise NotAcceptable(accept or "", tuple(each.media_types[0] for each in offers))
    return offers[best]


def _find_named(name: str, form: str, offers: tuple[ResultFormat, ...]) -> ResultFormat:
    for each in offers:
        if name.lower() in (each.name, *each.media_types):
            return each
    if any(name.lower() in (each.name, *each.media_types) for each in FORMATS):
        raise NotAcceptable(f"{form.upper()} as {name}", tuple(each.name for each in offers))
    raise BadRequest(f"the format {name!r} is not known; there are {', '.join(each.name for each in FORMATS)}")
