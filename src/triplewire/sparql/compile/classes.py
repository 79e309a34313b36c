"""Classes: columns of one SELECT that hold the same value in every row of it."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from triplewire.sparql.compile.bounds import Bounds, Key, conjoined, key_of
from triplewire.sparql.compile.sql import Sql
from triplewire.sparql.readings import Intervals

_OF_EVENTS = ("graph", "stream", "source", "application", "time", "received")
"""What is the same in all rows of one event."""


class Classes:
    """Grows by conditions that hold."""

    def __init__(self, tables: Iterable[str], *, single: bool) -> None:
        """`tables` are the aliases under which `quads` and `events` are read; with `single` the graph tells the
        event."""
        self._tables = tuple(tables)
        self._single = single
        self._parents: dict[Key, Key] = {}

    def copied(self) -> Classes:
        made = Classes(self._tables, single=self._single)
        made._parents = dict(self._parents)
        return made

    def join(self, conditions: Iterable[Sql]) -> None:
        for each in conditions:
            match each:
                case exp.EQ(this=exp.Column() as one, expression=exp.Column() as other):
                    self._unite(key_of(one), key_of(other))
        self._join_events()

    def _join_events(self) -> None:
        """Rows of one event have the same headers."""
        for tie in ("graph", "position") if self._single else ("position",):
            first: dict[Key, str] = {}
            for alias in self._tables:
                other = first.setdefault(self.root((alias, tie)), alias)
                for name in ("position", *_OF_EVENTS) if other != alias else ():
                    self._unite((alias, name), (other, name))

    def root(self, key: Key) -> Key:
        while (above := self._parents.get(key, key)) != key:
            key = above
        return key

    def _unite(self, one: Key, other: Key) -> None:
        one, other = self.root(one), self.root(other)
        if one != other:
            self._parents[one] = other

    def spread(self, found: Bounds) -> dict[Key, tuple[Intervals, ...]]:
        """The bounds of whole classes, by their roots."""
        return dict(conjoined({self.root(key): each} for key, each in found.items()) or {})
