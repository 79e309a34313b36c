"""Erasure deletes events or quads for good; this module computes the part of an event that remains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.terms import iri

LOSSES = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("quads", pa.int64(), nullable=False),
        pa.field("first", pa.int32()),
        pa.field("extensions", pa.string()),
    ]
)
"""Losses of events: the number of quads, and the index of the first quad that remains; null if the whole event is
erased. If another quad becomes the first, `extensions` holds the values that it takes over."""


class ErasureScope(StrEnum):
    """The kind of thing that the name of an erasure names."""

    EVENT = "event"
    """The event of that id, whole."""
    SOURCE = "source"
    """All events that say they come from there, whole."""
    SUBJECT = "subject"
    """Every quad that names the IRI as its subject or its object, or inside a triple term; and the event, whole, that
    has it as its id."""


@dataclass(frozen=True)
class Erasure:
    """Everything under a name that was published before a position is erased. Later events are new, and stay."""

    id: str
    scope: ErasureScope
    name: str
    position: int

    @property
    def digest(self) -> str:
        """By which whoever knows the name recognises it, once the name itself is gone."""
        return sha256(self.name.encode()).hexdigest()

    def names(self, line: str) -> bool:
        """Whether a quad, as a line of an event's text, goes."""
        if self.scope is not ErasureScope.SUBJECT:
            return False
        term = iri(self.name)
        subject, _, object_ = line.split("\t")
        return term in (subject, object_) or (object_.startswith("<<") and f" {term} " in object_)

    def left(self, event: str, source: str | None, text: str) -> str | None:
        """The text of an earlier event that remains; None if nothing does."""
        if (event if self.scope is not ErasureScope.SOURCE else source) == self.name:
            return None
        if self.scope is not ErasureScope.SUBJECT or iri(self.name) not in text:
            return text
        return "\n".join(line for line in text.split("\n") if not self.names(line)) or None


def find_affected(entries: pa.Table, erasure: Erasure) -> pa.Array:
    """The rows of a table of entries that something goes of, in order."""
    before = pc.less(entries["position"], erasure.position)
    column = entries["source" if erasure.scope is ErasureScope.SOURCE else "event"]
    named = pc.fill_null(pc.equal(column, erasure.name), False)
    if erasure.scope is ErasureScope.SUBJECT:
        named = pc.or_(named, pc.match_substring(entries["text"], iri(erasure.name)))
    likely = pc.indices_nonzero(pc.and_(before, named)).to_pylist()
    found = [row for row in likely if _remaining_text(entries, row, erasure) != entries["text"][row].as_py()]
    return pa.array(found, pa.int64())


def compute_losses(entries: pa.Table, erasure: Erasure) -> pa.Table:
    """The losses of the events in a table of entries, as `LOSSES`."""
    found = find_affected(entries, erasure)
    rows = found.to_pylist()
    texts = [entries["text"][row].as_py().split("\n") for row in rows]
    whole = [_remaining_text(entries, row, erasure) is None for row in rows]
    kept = [[] if gone else [not erasure.names(line) for line in text] for text, gone in zip(texts, whole, strict=True)]
    lost = [len(text) - sum(each) for text, each in zip(texts, kept, strict=True)]
    first = [each.index(True) if each else None for each in kept]
    others = [entries["extensions"][row].as_py() if place else None for row, place in zip(rows, first, strict=True)]
    return pa.table([entries["position"].take(found), lost, first, others], schema=LOSSES)


def apply_erasures(entries: pa.Table, erasures: Sequence[Erasure]) -> pa.Table:
    """The table of entries without erased events, and with the text that remains of others."""
    for erasure in erasures:
        rows = find_affected(entries, erasure).to_pylist()
        texts = {row: _remaining_text(entries, row, erasure) for row in rows}
        entries = _replace_values(entries, "text", {row: text or "" for row, text in texts.items()})
        entries = _drop_rows(entries, [row for row, text in texts.items() if text is None])
    return entries


def blank_erased(entries: pa.Table, erasures: Sequence[Erasure]) -> pa.Table:
    """The rows of a table of entries, all of them, with the text that is left; what goes whole says nothing any more,
    not even who said it."""
    for erasure in erasures:
        rows = find_affected(entries, erasure).to_pylist()
        texts = {row: _remaining_text(entries, row, erasure) for row in rows}
        gone = [row for row, text in texts.items() if text is None]
        entries = _replace_values(entries, "text", {row: text or "" for row, text in texts.items()})
        entries = _replace_values(entries, "event", dict.fromkeys(gone, ""))
        for name in ("source", "application", "extensions"):
            entries = _replace_values(entries, name, dict.fromkeys(gone))
    return entries


def _replace_values(entries: pa.Table, name: str, values: Mapping[int, str | None]) -> pa.Table:
    """The table with other values in some rows of a column."""
    if not values:
        return entries
    column = entries[name].to_pylist()
    for row, value in values.items():
        column[row] = value
    place = entries.column_names.index(name)
    return entries.set_column(place, entries.schema.field(name), pa.array(column, pa.string()))


def drop_affected(entries: pa.Table, erasures: Sequence[Erasure]) -> pa.Table:
    """The rows of a table of entries that nothing goes of."""
    for erasure in erasures:
        entries = _drop_rows(entries, find_affected(entries, erasure).to_pylist())
    return entries


def _drop_rows(entries: pa.Table, rows: Sequence[int]) -> pa.Table:
    return entries.take(np.setdiff1d(np.arange(entries.num_rows), rows)) if rows else entries


def _remaining_text(entries: pa.Table, row: int, erasure: Erasure) -> str | None:
    event, source, text = (entries[name][row].as_py() for name in ("event", "source", "text"))
    return erasure.left(event, source, text)
