"""Changes: the filter `changed`, which lets an event through if it says something new of a subject."""

from __future__ import annotations

from collections import OrderedDict, defaultdict

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.config import limits
from triplewire.edge.sieves.quads import quads_of


class Changed:
    """Passes events in which a subject has another value of a property than in the event before that told one.

    `filter=changed&filter.property=<IRI>`. Several values of a subject in one event are one set. What a subject has
    first is a change; an event that says nothing of the property does not pass. The last `most` subjects are
    remembered.
    """

    def __init__(self, property: str, most: str = str(limits.CHANGED_SUBJECTS)) -> None:
        if ":" not in property:
            raise ValueError(f"property must be an IRI, written out, not {property!r}")
        self._predicate = f"<{property.removeprefix('<').removesuffix('>')}>"
        if not most.isdecimal() or not 1 <= int(most) <= limits.CHANGED_SUBJECTS:
            raise ValueError(f"most must be a number from 1 to {limits.CHANGED_SUBJECTS}, not {most!r}")
        self._most = int(most)
        self._last: OrderedDict[str, frozenset[str]] = OrderedDict()

    def passes(self, batch: pa.Table) -> pa.Array:
        quads = quads_of(batch)
        told = quads.filter(pc.equal(quads["predicate"], self._predicate))
        values = defaultdict[tuple[int, str], set[str]](set)
        for row, subject, value in zip(*(told[name].to_pylist() for name in ("row", "subject", "object")), strict=True):
            values[row, subject].add(value)
        passed = [False] * batch.num_rows
        for (row, subject), found in values.items():
            passed[row] |= self._differs(subject, frozenset(found))
        return pa.array(passed)

    def _differs(self, subject: str, value: frozenset[str]) -> bool:
        before = self._last.pop(subject, None)
        self._last[subject] = value
        while len(self._last) > self._most:
            self._last.popitem(last=False)
        return before != value
