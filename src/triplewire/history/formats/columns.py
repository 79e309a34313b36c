"""Columns of terms, a whole batch at a time: kinds, parts, and rows assembled from cells.

Terms are canonical N-Triples text, held as bytes. No function loops over cells in Python, except for text with
escapes, where one call of the JSON parser takes all of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final, TypeAlias

import orjson
import pyarrow as pa
import pyarrow.compute as pc

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Terms formatted at once. A formatter needs about eight times as much for a moment."""

GATHER_SECONDS: Final = 0.02
"""Rows found within this time are formatted together; too short to delay a first row noticeably."""

BATCH_ROWS: Final = 8_192
"""Solutions per batch of an engine: the first batch leaves when it is full or the answer is complete."""

TermColumn: TypeAlias = pa.BinaryArray


class TermKind(Enum):
    """Kinds of term that formats write differently."""

    IRI = "iri"
    BLANK = "blank"
    PLAIN = "plain"
    TYPED = "typed"
    TAGGED = "tagged"
    TRIPLE = "triple"


CellWriters = Mapping[TermKind, Callable[[TermColumn], TermColumn]]
"""A function for each kind, from a column of terms of that kind to a column of cells."""

_END = 2**31 - 1

_TRIPLE = r"(?s)^<<\( (?P<subject>\S+) (?P<predicate>\S+) (?P<object>.*) \)>>$"


def binary_columns(batch: pa.RecordBatch, count: int) -> list[TermColumn]:
    """The first columns of a batch, as bytes."""
    return [batch.column(index).cast(pa.string()).view(pa.binary()) for index in range(count)]


def split_batches(
    batches: Iterable[pa.RecordBatch], now: Callable[[], float] = time.monotonic
) -> Iterator[pa.RecordBatch]:
    """Regroup rows into batches that are small enough to format at once, none of them empty.

    Formatting a batch costs the same for one row as for hundreds, so that small batches in quick succession are joined.
    """
    waiting = list[pa.RecordBatch]()
    since = now()
    for batch in batches:
        waiting.append(batch)
        if now() - since >= GATHER_SECONDS or sum(each.num_rows for each in waiting) >= BATCH_ROWS:
            yield from _halve(pa.concat_batches(waiting))
            waiting, since = [], now()
    if waiting:
        yield from _halve(pa.concat_batches(waiting))


def _halve(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.num_rows <= 1 or batch.nbytes <= BATCH_BYTES:
        if batch.num_rows:
            yield batch
        return
    middle = batch.num_rows // 2
    yield from _halve(batch.slice(0, middle))
    yield from _halve(batch.slice(middle))


def write_cells(terms: TermColumn, writers: CellWriters) -> TermColumn:
    """Return a cell for each term, written by its kind; null for a null."""
    common = _common_kind(terms)
    if common is not None:
        return writers[common](terms)
    cells = pa.nulls(len(terms), pa.binary())
    for kind, mask in _masks(terms):
        if pc.any(mask).as_py():
            cells = pc.replace_with_mask(cells, mask, writers[kind](terms.filter(mask)))
    return cells


def _common_kind(terms: TermColumn) -> TermKind | None:
    """Return IRI or TYPED if all terms are of that kind, as in most columns; else None."""
    if terms.null_count or not len(terms):
        return None
    first = terms[0].as_py()
    if first.startswith(b"<") and pc.all(pc.starts_with(terms, "<")).as_py():
        return None if pc.any(pc.starts_with(terms, "<<")).as_py() else TermKind.IRI
    if first.endswith(b">") and pc.all(pc.and_(pc.starts_with(terms, '"'), pc.ends_with(terms, ">"))).as_py():
        return TermKind.TYPED
    return None


def _masks(terms: TermColumn) -> Iterator[tuple[TermKind, pa.BooleanArray]]:
    bracket, triple = _starts(terms, "<"), _starts(terms, "<<")
    yield TermKind.IRI, pc.and_not(bracket, triple)
    yield TermKind.TRIPLE, triple
    yield TermKind.BLANK, _starts(terms, "_")
    quoted, plain, typed = _starts(terms, '"'), _ends(terms, '"'), _ends(terms, ">")
    yield TermKind.PLAIN, pc.and_(quoted, plain)
    yield TermKind.TYPED, pc.and_(quoted, typed)
    yield TermKind.TAGGED, pc.and_not(pc.and_not(quoted, plain), typed)


def _starts(terms: TermColumn, text: str) -> pa.BooleanArray:
    return pc.fill_null(pc.starts_with(terms, text), False)


def _ends(terms: TermColumn, text: str) -> pa.BooleanArray:
    return pc.fill_null(pc.ends_with(terms, text), False)


def strip_delimiters(terms: TermColumn) -> TermColumn:
    """Drop the first and the last character: of an IRI, or of a plain literal, whose body stays escaped."""
    return pc.binary_slice(terms, 1, -1)


def drop_prefix(texts: TermColumn, count: int) -> TermColumn:
    return pc.binary_slice(texts, count, _END)


def split_typed(terms: TermColumn) -> tuple[TermColumn, TermColumn]:
    """Bodies, still escaped, and the addresses of their datatypes."""
    bodies, datatypes = _split_literal(terms)
    return bodies, pc.binary_slice(datatypes, len("^^<"), -1)


def split_tagged(terms: TermColumn) -> tuple[TermColumn, TermColumn]:
    """Bodies, still escaped, and their language tags, each with its direction behind `--` if it has one."""
    bodies, tags = _split_literal(terms)
    return bodies, drop_prefix(tags, len("@"))


def _split_literal(terms: TermColumn) -> tuple[TermColumn, TermColumn]:
    """Split at the last quotation mark; the first one goes."""
    halves = pc.split_pattern(terms, '"', max_splits=1, reverse=True)
    return drop_prefix(pc.list_element(halves, 0), 1), pc.list_element(halves, 1)


def split_triples(terms: TermColumn) -> list[TermColumn]:
    """Subjects, predicates and objects of triple terms."""
    parts = pc.extract_regex(terms, _TRIPLE)
    return [parts.field(name) for name in ("subject", "predicate", "object")]


def unescape(bodies: TermColumn) -> TermColumn:
    """Lexical forms. Every escape of canonical N-Triples is one of JSON."""
    mask = pc.match_substring(bodies, "\\")
    if not pc.any(mask).as_py():
        return bodies
    text = join_texts(bodies.filter(mask), b'","')
    plain = pa.array(orjson.loads(b'["' + text + b'"]'), pa.string())
    return pc.replace_with_mask(bodies, mask, plain.view(pa.binary()))


def concatenate(*parts: TermColumn | bytes) -> TermColumn:
    """Join columns and constants row by row."""
    return pc.binary_join_element_wise(*(_scalar(part) for part in parts), _scalar(b""))


def _scalar(part: TermColumn | bytes) -> TermColumn | pa.Scalar:
    return pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part


def join_columns(columns: list[TermColumn], separator: bytes, count: int) -> TermColumn:
    """One text for each of `count` rows: its cells with the separator between; a null is empty."""
    if not columns:
        return pa.repeat(pa.scalar(b"", pa.binary()), count)
    return pc.binary_join_element_wise(*columns, _scalar(separator), null_handling="replace", null_replacement=b"")


def join_texts(texts: TermColumn, separator: bytes) -> bytes:
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return bytes(pc.binary_join(whole, _scalar(separator))[0].as_buffer())


def stream_document(head: bytes, bodies: Iterable[bytes], tail: bytes, separator: bytes = b"") -> Iterator[bytes]:
    """Yield head, bodies and tail, with the separator between bodies.

    The head leaves with the first body: an error before that still becomes an error response.
    """
    prefix = head
    begun = False
    for body in bodies:
        yield prefix + body
        prefix, begun = separator, True
    yield tail if begun else head + tail
