"""Watches: one query in its place, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from triplewire.config import limits
from triplewire.model.errors import QueryLimit
from triplewire.model.subscriptions import ANSWER, ContinuousQuery, ReportStrategy
from triplewire.ongoing.places import Turn
from triplewire.ongoing.windows.evaluations import Asked, Evaluator, Rows
from triplewire.ongoing.windows.instants import Arrived
from triplewire.ongoing.windows.payloads import bounds, comparable, solutions, triples
from triplewire.ongoing.windows.reports import reported
from triplewire.ongoing.windows.results import Kind
from triplewire.ongoing.windows.standings import Standing
from triplewire.ongoing.windows.views import Showing, View
from triplewire.storage.registry.ports import RegistryChange

Result = dict[str, Any]
"""A row of `RESULTS`."""

_REMEMBERED = 2
"""Answers: that of the last instant, and of the one before."""


@dataclass
class Watch:
    """`change` is what registered it."""

    change: RegistryChange
    query: ContinuousQuery
    asked: Asked
    standing: Standing
    _answers: dict[object, Rows] = field(default_factory=dict)

    def take(self, arrived: Mapping[str, Arrived], turn: Turn) -> None:
        """Raises QueryLimit where more would have to be kept than may be."""
        wanted = {name: each for name, each in arrived.items() if name in self.asked.plan.streams}
        self.standing.take(wanted, turn)
        if self.standing.weight > limits.WINDOW_TRIPLES:
            raise QueryLimit(f"its windows hold more than {limits.WINDOW_TRIPLES} triples")

    def tell(self, evaluator: Evaluator, arrived: int | None, turn: Turn) -> Iterator[Result]:
        """What is told in a turn. Raises QueryLimit."""
        for showing in self.standing.showings(arrived, turn):
            rows = self._rows(evaluator, showing.now, showing.before)
            if showing.was is None and not rows:
                continue
            if showing.was is not None and rows == self._rows(evaluator, *showing.was):
                continue
            yield self._result(showing, rows, turn)

    def pass_by(self, arrived: int | None, turn: Turn) -> None:
        """Go on without telling anything."""
        for _ in self.standing.showings(arrived, turn):
            pass

    def _rows(self, evaluator: Evaluator, now: View, before: View | None) -> Rows:
        report = self.asked.plan.report
        earlier = () if before is None or report is ReportStrategy.ALL else self._answer(evaluator, before)
        return reported(report, self._answer(evaluator, now), earlier)

    def _answer(self, evaluator: Evaluator, view: View) -> Rows:
        """Where nothing entered or left, the answer is the same."""
        key = view.key, view.instant.moment if self.asked.plan.timed else None
        if key not in self._answers:
            found = comparable(self.asked.plan, evaluator.answer(self.asked, view))
            for old in [*self._answers][: 1 - _REMEMBERED]:
                del self._answers[old]
            self._answers[key] = found
        return self._answers[key]

    def _result(self, showing: Showing, rows: Rows, turn: Turn) -> Result:
        plan, view, id = self.asked.plan, showing.now, self._event(showing)
        windows = bounds(plan, view)
        beside = {"query": self.query.id, "report": plan.report, "revision": showing.revision, "windows": windows}
        kind = Kind.SELECT if plan.template is None else Kind.CONSTRUCT
        starts = [each.bounds.start for each in view.contents if each.bounds is not None]
        return {
            "position": turn.upto,
            "query": self.query.id,
            "into": self.query.into,
            "start": min(starts, default=view.instant.moment),
            "end": view.instant.moment,
            "at": view.instant.position,
            "revision": showing.revision,
            "report": plan.report,
            "kind": kind,
            "payload": solutions(plan, rows, beside) if kind is Kind.SELECT else triples(plan, rows, id),
            "windows": orjson.dumps(windows).decode(),
            "event": id,
        }

    def _event(self, showing: Showing) -> str:
        instant = showing.now.instant
        return f"{name_of(self.query.id)}:{instant.moment}:{instant.position}:{showing.revision}"


def name_of(query: str) -> str:
    """How the ids of a query's answers begin."""
    return ANSWER + quote(query, safe="")


def suspension(query: ContinuousQuery, reason: str, turn: Turn) -> Result:
    """That a query is asked no more."""
    problem = {"type": "about:blank", "title": "the query is suspended", "detail": reason, "query": query.id}
    row = dict.fromkeys(("start", "end", "at", "report", "windows"))
    return row | {
        "position": turn.upto,
        "query": query.id,
        "into": query.into,
        "revision": 0,
        "kind": Kind.SUSPENDED,
        "payload": orjson.dumps(problem).decode(),
        "event": f"{name_of(query.id)}:suspended",
    }
