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
"""Terms that are formatted at once; a formatter needs about eight times as much for a moment."""

GATHER_SECONDS: Final = 0.02
"""What an engine finds in this time goes out together; who waits for the first row does not notice it."""

BATCH_ROWS: Final = 8_192
"""Solutions that an engine hands over at once: the first of them leave when so many are known, or all."""


TermColumn: TypeAlias = pa.BinaryArray


class TermKind(Enum):
    """Kinds of term that formats write differently."""

    IRI = "iri"
    BLANK = "blank"
    PLAIN = "plain"
    TYPED = "typed"
    TAGGED = "tagged"
    TRIPLE = "triple"


Writers = Mapping[TermKind, Callable[[TermColumn], TermColumn]]
"""For each kind, what makes cells of terms that are all of it."""

_END = 2**31 - 1

_TRIPLE = r"(?s)^<<\( (?P<subject>\S+) (?P<predicate>\S+) (?P<object>.*) \)>>$"


def binary_columns(batch: pa.RecordBatch, count: int) -> list[TermColumn]:
    """The first columns of a batch, as bytes."""
    return [_binary(batch.column(index)) for index in range(count)]


def _binary(column: pa.Array) -> TermColumn:
    return column.cast(pa.string()).view(pa.binary())


def split_batches(
    batches: Iterable[pa.RecordBatch], now: Callable[[], float] = time.monotonic
) -> Iterator[pa.RecordBatch]:
    """The same rows in batches that are small enough to be formatted at once, and none of them empty. To format a
    batch costs the same for one row as for hundreds, so that what comes in one moment goes out together."""
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


def write_cells(terms: TermColumn, writers: Writers) -> TermColumn:
    """A cell for each term, by its kind; null where the term is."""
    alike = _common_kind(terms)
    if alike is not None:
        return writers[alike](terms)
    made = pa.nulls(len(terms), pa.binary())
    for kind, mask in _masks(terms):
        if pc.any(mask).as_py():
            made = pc.replace_with_mask(made, mask, writers[kind](terms.filter(mask)))
    return made


def _common_kind(terms: TermColumn) -> TermKind | None:
    """The kind of all terms, where it is one of the two that most columns are of throughout."""
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
    """What stands between the first and the last character: an address, or the body of a plain literal."""
    return pc.binary_slice(terms, 1, -1)


def drop_prefix(texts: TermColumn, count: int) -> TermColumn:
    """All but the first bytes: of a blank node, its label."""
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
    """What stands before the last quotation mark, without the first, and what stands behind it."""
    halves = pc.split_pattern(terms, '"', max_splits=1, reverse=True)
    return drop_prefix(pc.list_element(halves, 0), 1), pc.list_element(halves, 1)


def split_triples(terms: TermColumn) -> list[TermColumn]:
    """Subjects, predicates and objects of triple terms."""
    found = pc.extract_regex(terms, _TRIPLE)
    return [found.field(name) for name in ("subject", "predicate", "object")]


def unescape(bodies: TermColumn) -> TermColumn:
    """Lexical forms. Every escape of canonical N-Triples is one of JSON."""
    mask = pc.match_substring(bodies, "\\")
    if not pc.any(mask).as_py():
        return bodies
    text = join_texts(bodies.filter(mask), b'","')
    found = pa.array(orjson.loads(b'["' + text + b'"]'), pa.string())
    return pc.replace_with_mask(bodies, mask, found.view(pa.binary()))


def concatenate(*parts: TermColumn | bytes) -> TermColumn:
    """Columns and constants, side by side."""
    return pc.binary_join_element_wise(*(_scalar(part) for part in parts), _scalar(b""))


def _scalar(part: TermColumn | bytes) -> TermColumn | pa.Scalar:
    return pa.scalar(part, pa.binary()) if isinstance(part, bytes) else part


def join_columns(columns: list[TermColumn], separator: bytes, count: int) -> TermColumn:
    """One text for each of `count` rows: its cells with the separator between; a null is empty."""
    if not columns:
        return pa.repeat(pa.scalar(b"", pa.binary()), count)
    return pc.binary_join_element_wise(*columns, _scalar(separator), null_handling="replace", null_replacement=b"")


def join_texts(texts: TermColumn, separator: bytes) -> bytes:
    """All texts of a column as one."""
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return bytes(pc.binary_join(whole, _scalar(separator))[0].as_buffer())


def stream_document(head: bytes, bodies: Iterable[bytes], tail: bytes, separator: bytes = b"") -> Iterator[bytes]:
    """Head, bodies and tail, with the separator between bodies. The head goes out with the first body: until then
    an error can still be told as an error."""
    before = head
    begun = False
    for body in bodies:
        yield before + body
        before, begun = separator, True
    yield tail if begun else head + tail
