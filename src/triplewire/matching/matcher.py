"""The matcher: both tiers of matching, and who of them decides what.

```
          ┌── programs ────────────────────────── groups ──────────────┐
          │       └─ what they leave ── exact ─── subscriptions ───────┤
events ───┤                                                            ├── matches
          ├── guards ── candidates ──── rest ──── subscriptions ───────┤
          └── what has no guard ─────── rest ──── subscriptions ───────┘
```

Subscriptions that the index decides are known to the evaluator `exact` as well, which decides about the few events that
the index leaves: those with long numbers, times without a zone, escapes. All others are for the evaluator `rest`, on
the events that have what they surely require.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.matching.bags import tabled
from triplewire.matching.evaluator import Evaluator, connection
from triplewire.matching.index import Guards, Membership, Memberships
from triplewire.matching.index.arrays import Int32
from triplewire.matching.index.groups import GroupIndex
from triplewire.matching.ontologies import Closures
from triplewire.matching.shapes import Shape
from triplewire.registry.ports import Change
from triplewire.registry.subscriptions import SHAPE, SUBSCRIPTION


@dataclass(frozen=True)
class Indexed:
    """A shape, and its program or its guard in the index, by number; None for what it does not have."""

    memberships: Memberships
    guards: Guards
    program: int | None
    guard: int | None


@dataclass
class Matcher:
    """Subscriptions, kept up by registry changes; matches batches of events against them.

    Not safe for threads: one matcher belongs to one worker. `version` is the position up to which registry changes
    have been applied; matching a batch that ends later than that would miss subscriptions.
    """

    version: int = 0
    _index: GroupIndex = field(default_factory=GroupIndex)
    _duck: duckdb.DuckDBPyConnection = field(default_factory=connection)
    _shapes: dict[str, Indexed] = field(default_factory=dict)
    _programs: dict[int, str] = field(default_factory=dict)
    """The shape of each program, and of each guard."""
    _open: set[str] = field(default_factory=set)
    """Shapes that nothing guards."""
    _groups: dict[str, tuple[int | None, bool]] = field(default_factory=dict)
    """The group of each subscription, if it has one, and whether the index decides it."""
    _ended: list[tuple[int, int]] = field(default_factory=list)
    """Where subscriptions ended, and the groups that they leave."""

    def __post_init__(self) -> None:
        self._closures = Closures(self._duck)
        self._exact, self._rest = (
            Evaluator(self._duck, self._closures, name, _making=tabled) for name in ("exact", "rest")
        )

    def apply(self, changes: Iterable[Change], upto: int) -> None:
        """Take in registry changes, in order; afterwards the matcher speaks for positions up to `upto`."""
        exact, rest = list[Change](), list[Change]()
        joining = defaultdict[int, list[Membership]](list)
        for change in changes:
            if change.kind == SUBSCRIPTION:
                self._change(change, exact, rest, joining)
            else:
                self._note(change)
                exact.append(change)
                rest.append(change)
        for program, memberships in joining.items():
            self._index.join(program, memberships)
        self._exact.apply(exact, upto)
        self._rest.apply(rest, upto)
        self.version = upto

    def match(self, entries: pa.Table, without: Collection[str] = ()) -> pa.Table:
        """The matches of a batch of `ENTRIES`, as a `MATCHES` table. Those of groups may concern nobody: a group does
        not tell since when its members are there. Of shapes that it goes `without` only what the index finds is
        told."""
        if self._closures.prepare():
            self._index.relate(self._closures.rows)
        result = self._index.match(entries)
        left = frozenset(without)
        slow = [each for each in result.slow if self._programs[each[1]] not in left]
        found = [result.matches, *self._decided(entries, slow), *self._finished(entries, result.candidates, left)]
        filled = [each for each in found if each.num_rows]
        return pa.concat_tables(filled).sort_by("position") if len(filled) > 1 else (filled or found)[0]

    def spent(self) -> dict[str, float]:
        """The CPU seconds that the evaluators took for each shape since this was asked last."""
        taken = defaultdict[str, float](float)
        for evaluator in (self._exact, self._rest):
            for shape, seconds in evaluator.spent.items():
                taken[shape] += seconds
            evaluator.spent.clear()
        return dict(taken)

    def forget(self, before: int) -> None:
        """Drop subscriptions that ended below a position; no later batch can concern them."""
        for _, group in [each for each in self._ended if each[0] < before]:
            self._index.leave(group)
        self._ended = [each for each in self._ended if each[0] >= before]
        self._exact.forget(before)
        self._rest.forget(before)

    def _note(self, change: Change) -> None:
        if change.kind != SHAPE or change.value is None or change.key in self._shapes:
            return
        shape = Shape.from_value(change.value)
        memberships, guards = Memberships(shape), Guards(shape)
        program = None if memberships.program is None else self._index.add_program(memberships.program)
        guard = None if guards.program is None else self._index.add_program(guards.program, guards=True)
        self._shapes[change.key] = Indexed(memberships, guards, program, guard)
        self._programs |= {number: change.key for number in (program, guard) if number is not None}

    def _change(
        self, change: Change, exact: list[Change], rest: list[Change], joining: defaultdict[int, list[Membership]]
    ) -> None:
        if change.key in self._groups:
            group, decided = self._groups.pop(change.key)
            if group is not None:
                self._ended.append((change.position, group))
            (exact if decided else rest).append(Change(change.position, SUBSCRIPTION, change.key, None))
        if change.value is None:
            return
        shape, constants = self._shapes[change.value["shape"]], change.value["constants"]
        membership = shape.memberships.of(constants)
        program, decided = shape.program, membership is not None
        if membership is None and shape.guard is not None:
            program, membership = shape.guard, shape.guards.of(constants)
        if program is None or membership is None:
            self._open.add(change.value["shape"])
        else:
            joining[program].append(membership)
        self._groups[change.key] = (None if membership is None else membership.group, decided)
        (exact if decided else rest).append(change)

    def _decided(self, entries: pa.Table, slow: Sequence[tuple[int, int]]) -> list[pa.Table]:
        """What of the events that the index leaves matches, program by program."""
        events = defaultdict[int, list[int]](list)
        for event, program in slow:
            events[program].append(event)
        return [
            self._exact.match(entries.take(pa.array(places)), [self._programs[program]])
            for program, places in events.items()
        ]

    def _finished(self, entries: pa.Table, candidates: Mapping[int, Int32], left: frozenset[str]) -> list[pa.Table]:
        """What of the candidates matches, and of all events for shapes that have no guard."""
        found = [self._rest.match(entries, self._open - left)]
        candidates = {guard: each for guard, each in candidates.items() if self._programs[guard] not in left}
        if candidates:
            places = np.unique(np.concatenate([*candidates.values()]))
            shapes = {self._programs[guard] for guard in candidates} - self._open
            found.append(self._rest.match(entries.take(pa.array(places)), shapes))
        return found
