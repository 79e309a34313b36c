"""Plannings: what rules go by while one query is planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from triplewire.sparql.algebra import Var
from triplewire.sparql.statistics import Statistics


@dataclass(frozen=True)
class Planning:
    """The statistics of the data, and names for variables that a rule makes."""

    statistics: Statistics = field(default_factory=Statistics)
    _numbers: count[int] = field(default_factory=count)

    def fresh(self) -> Var:
        """A variable that the query does not have."""
        return Var(f".n{next(self._numbers)}")
