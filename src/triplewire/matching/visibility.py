"""Visibility in matching: how a subscription is matched for a subscriber that may see only a part of each event.

```
patterns alone, each with a predicate ── one hidden ────────────────▶ never has a solution
                                      ├─ all visible, no class hidden ▶ the same query: the index decides it
                                      └─ all visible, a class hidden: the index decides it on events without that class
anything else ──────────────────────────────────────────────────────▶ matched by the evaluator on the visible part
```

Streams and graphs are not looked at here: an event that a subscriber may not see is not delivered, whatever it
matches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.kernels.arrays import Flags, text_buffers
from triplewire.matching.shape_requests import EventSelector, restrict_query
from triplewire.security.visibility import EVERYTHING, TRIPLE_TERM, PatternSet, Visibility
from triplewire.sparql import Apply, Conjunction, Const, Pattern, Query, Var, to_conjunction
from triplewire.sparql.algebra import Filter, Select, header_column
from triplewire.sparql.construct import construct_to_select

_NOWHERE = EventSelector(stream=("",))
"""A condition that no event satisfies: events of a stream without a name."""


def restrict_to_visible(query: Query, visibility: Visibility | None) -> tuple[Query, Visibility | None]:
    """Rewrite a query so that it has the solutions that the original has on the visible part of each event: a query
    about whole events, or, with a visibility, about redacted ones."""
    inside = None if visibility is None else replace(visibility, streams=EVERYTHING, graphs=EVERYTHING)
    if inside is None or inside.leaves_events:
        return query, None
    flat = to_conjunction(construct_to_select(query) if query.form == "construct" else query)
    stored = () if flat is None else tuple(each for each in flat.patterns if header_column(each) is None)
    if any(_never_matches(each, inside) for each in stored):
        return restrict_query(query, _NOWHERE, solutions=True), None
    if flat is None or not stored or not all(isinstance(each.predicate, Const) for each in stored):
        return query, inside
    if not inside.classes.is_all:
        return query, replace(inside, predicates=EVERYTHING)
    return _exclude_triple_terms(query, flat, stored), None


def redact_entries(entries: pa.Table, visibility: Visibility | None) -> pa.Table:
    """Redact a table of entries: hidden rows are left out, and hidden quads removed from texts. The order stays; one
    that is all visible is returned as it is."""
    if visibility is None or not entries.num_rows:
        return entries
    entries = _filter_column(entries, "stream", visibility.streams, "{}")
    entries = _filter_column(entries, "event", visibility.graphs, "<{}>")
    concerned = _rows_with_hidden(entries["text"], visibility)
    if concerned is not None and not concerned:
        return entries
    texts = entries["text"].to_pylist()
    rows = range(len(texts)) if concerned is None else concerned
    left = {row: visibility.visible(texts[row]) for row in rows}
    changed = {row: text for row, text in left.items() if text is not texts[row]}
    if not changed:
        return entries
    shown = [changed.get(row, text) for row, text in enumerate(texts)]
    column = entries.schema.get_field_index("text")
    made = entries.set_column(column, pa.field("text", pa.string()), pa.array(shown, pa.string()))
    return (made.filter(pc.is_valid(made["text"])) if None in changed.values() else made).cast(entries.schema)


def find_redacted(texts: pa.ChunkedArray, visibility: Visibility) -> Flags:
    """Flags the events that may have hidden quads."""
    found, rows = np.zeros(len(texts), np.bool_), _rows_with_hidden(texts, visibility)
    found[slice(None) if rows is None else rows] = True
    return found


def _filter_column(entries: pa.Table, name: str, scope: PatternSet, form: str) -> pa.Table:
    """The rows whose value in a column is in a scope. Each value is looked at once."""
    if scope.is_all or not entries.num_rows:
        return entries
    names = pc.unique(entries[name]).to_pylist()
    visible = [each for each in names if form.format(each) in scope]
    if len(visible) == len(names):
        return entries
    return entries.filter(pc.is_in(entries[name], pa.array(visible, entries[name].type)))


def _rows_with_hidden(texts: pa.ChunkedArray, visibility: Visibility) -> list[int] | None:
    """Rows that may have hidden quads; None if all may."""
    if visibility.leaves_events or not len(texts):
        return []
    if visibility.marks is None:
        return None
    starts, data = text_buffers(texts)
    text = data.tobytes()
    return sorted({row for mark in visibility.marks for row in _rows_containing(mark.encode(), starts, text)})


def _rows_containing(mark: bytes, starts: np.ndarray, data: bytes) -> Iterator[int]:
    """The texts that contain a string. One search over all texts is faster than one for each."""
    stop = int(starts[-1])
    place = data.find(mark, int(starts[0]), stop)
    while place >= 0:
        row = int(np.searchsorted(starts, place, "right")) - 1
        if place + len(mark) <= starts[row + 1]:
            yield row
            place = data.find(mark, int(starts[row + 1]), stop)
        else:
            place = data.find(mark, place + 1, stop)


def _never_matches(pattern: Pattern, visibility: Visibility) -> bool:
    """Does no visible quad match the pattern?"""
    hidden = isinstance(pattern.predicate, Const) and pattern.predicate.term not in visibility.predicates
    return hidden or (isinstance(pattern.object, Const) and pattern.object.term.startswith(TRIPLE_TERM))


def _exclude_triple_terms(query: Query, flat: Conjunction, stored: Sequence[Pattern]) -> Query:
    """The query without solutions in which an object is a triple term."""
    conditions = tuple(
        Apply("||", (Apply("isiri", (each,)), Apply("isliteral", (each,)))) for each in _object_variables(flat, stored)
    )
    if not conditions:
        return query
    if isinstance(query.where, Select):
        return replace(query, where=replace(query.where, inner=Filter(query.where.inner, conditions)))
    return replace(query, where=Filter(query.where, conditions))


def _object_variables(flat: Conjunction, stored: Sequence[Pattern]) -> Iterator[Var]:
    """Variables that occur only as objects; others are bound to IRIs."""
    elsewhere = {node for each in flat.patterns for node in (each.subject, each.predicate, each.graph)}
    yield from dict.fromkeys(
        each.object for each in stored if isinstance(each.object, Var) and each.object not in elsewhere
    )
