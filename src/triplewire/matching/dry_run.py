"""Dry run of a subscription: how it would be matched, and its matches among recent events, without registering it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot

from triplewire.matching.evaluator import Evaluator, make_single_evaluator
from triplewire.matching.event_history import EventReader, VisibleEvents, find_position, scan_backwards
from triplewire.matching.index.memberships import shape_memberships
from triplewire.matching.plans import make_plan
from triplewire.matching.shapes import LiftedShape, lift
from triplewire.model import START, Kind, Subscription, format_position
from triplewire.model.clock import Clock, format_timestamp
from triplewire.security.visibility import Visibility
from triplewire.sparql import Query
from triplewire.sparql.serialization import format_algebra
from triplewire.storage.log.ports import LOOKUP_POSITIONS
from triplewire.storage.registry.ports import RegistryChange

DRY_RUN_SECONDS: Final = 5.0
"""The longest time that a dry run matches events of the last hour. It reports on those that it got to."""

DRY_RUN_EXAMPLES: Final = 3
"""Matching events that a dry run lists."""


_HOUR = 3_600_000_000
_UNSIGNED = 2**64 - 1


@dataclass(frozen=True)
class DryRun:
    """How a subscription would be matched, and its matches among the events of the last hour, or from its start
    position on. `complete` is false if there were too many events; then the newest were matched. `examples` are the
    newest matches, as rows of `ENTRIES` without their text, newest first."""

    query: Query
    lifted: LiftedShape
    matched: int
    looked_at: int
    complete: bool
    examples: tuple[dict[str, Any], ...]

    @property
    def tier(self) -> str:
        """The tier that decides the subscription: `index` or `evaluator`."""
        return "evaluator" if _describe_index(self.lifted) is None else "index"

    def plan(self) -> dict[str, Any]:
        """The algebra; the index program, null if the index does not decide the query; and the SQL of the evaluator."""
        compiled = make_plan(self.lifted.shape).sql("constants", plain=False, first=None)
        sql = sqlglot.parse_one(compiled, dialect="duckdb").sql(dialect="duckdb", pretty=True)
        return {"algebra": format_algebra(self.query.where), "index": _describe_index(self.lifted), "sql": sql}

    def value(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "shape": {"key": self.lifted.shape.key, "constants": list(self.lifted.constants)},
            "tier": self.tier,
            "plan": self.plan(),
            "matched": self.matched,
            "of": self.looked_at,
            "complete": self.complete,
            "examples": [_example(each) for each in self.examples],
        }


def run_dry(
    query: Query,
    kind: Kind,
    log: EventReader,
    clock: Clock,
    ontologies: Sequence[RegistryChange] = (),
    begins: int | None = None,
    visibility: Visibility | None = None,
    seconds: float = DRY_RUN_SECONDS,
    positions: int = LOOKUP_POSITIONS,
) -> DryRun:
    """Match a query without parameters against the events of the last hour, or from the position `begins` on, of which
    the newest `positions` count. `ontologies` are the registry changes that loaded the current ontologies. Only visible
    parts of events count. Blocks for about `seconds`: call it from a thread. Raises Unsupported for queries that are
    not allowed in subscriptions."""
    lifted = lift(query, solutions=kind is Kind.BINDINGS)
    tally = _MatchCounter(_evaluator(lift(query, solutions=False), ontologies))
    head = log.head()
    asked = find_position(log, clock.now() - _HOUR, head) if begins is None else max(START, begins - 1)
    after = max(asked, head - positions)
    deadline = clock.ticks() + seconds
    complete = after == asked
    for batch in scan_backwards(VisibleEvents(log, visibility), after, head):
        if clock.ticks() > deadline:
            complete = False
            break
        tally.take(batch)
    return DryRun(query, lifted, tally.matched, tally.looked_at, complete, tuple(tally.examples))


class _MatchCounter:
    """Counts matches batch by batch, the newest first."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.matched = 0
        self.looked_at = 0
        self.examples: list[dict[str, Any]] = []

    def take(self, batch: pa.Table) -> None:
        positions = pc.unique(self._evaluator.match(batch)["position"])
        self.looked_at += batch.num_rows
        self.matched += len(positions)
        found = batch.drop_columns(["text"]).filter(pc.is_in(batch["position"], positions))
        wanted = DRY_RUN_EXAMPLES - len(self.examples)
        self.examples += found.to_pylist()[::-1][:wanted]


def _evaluator(lifted: LiftedShape, ontologies: Sequence[RegistryChange]) -> Evaluator:
    """An evaluator with this subscription alone."""
    return make_single_evaluator(
        Subscription("", None, Kind.SIGNAL, lifted.shape.key, lifted.constants), lifted.shape, ontologies
    )


def _describe_index(lifted: LiftedShape) -> dict[str, Any] | None:
    """The group of the subscription and the conditions of the group. A threshold tells members of a group apart."""
    memberships = shape_memberships(lifted.shape)
    program, membership = memberships.program, memberships.of(lifted.constants)
    if program is None or membership is None:
        return None
    limit = program.threshold
    threshold = None if limit is None else f"{limit.op.name.lower()} {lifted.constants[limit.parameter]}"
    counts = {"patterns": len(program.rows), "tests": len(program.steps)}
    return {"group": format_position(membership.group & _UNSIGNED), **counts, "threshold": threshold}


def _example(entry: dict[str, Any]) -> dict[str, str]:
    return {
        "event": entry["event"],
        "stream": entry["stream"],
        "position": format_position(entry["position"]),
        "time": format_timestamp(entry["time"]),
    }
