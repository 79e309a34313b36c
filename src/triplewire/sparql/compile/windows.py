"""Windows in SQL: the relations that hold what the windows of a continuous query do, when one of them closes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

HEADERS = ("position", "graph", "stream", "source", "application", "time", "received")
"""What `events` has of an event."""


def relation_of(window: int) -> str:
    """The name of the relation that has the columns of `quads` and a row for each quad in the window."""
    return f"window_{window}"


@dataclass(frozen=True)
class Headers:
    """The events of a window as a source. Which of an event's quads are in the window does not matter."""

    window: int
    alias: str

    def sql(self) -> exp.Expr:
        events = exp.select(*(exp.column(name) for name in HEADERS)).from_(relation_of(self.window))
        return events.distinct(copy=False).subquery(self.alias, copy=False)
