"""Tables: the subscriptions of one shape, as the evaluator holds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import duckdb

from triplewire.matching.constants import Constants
from triplewire.matching.ontologies import Closures
from triplewire.matching.shapes import Shape
from triplewire.model import Subscription


class Table(Protocol):
    """Subscriptions of a shape. Those that come are collected and reach the table together, at the next `prepare`."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns of `quads` that are read."""

    @property
    def columns_alone(self) -> frozenset[str]:
        """Those that are read where only some subscriptions are looked at."""

    @property
    def lists(self) -> bool:
        """Whether solutions are listed."""

    def add(self, subscription: Subscription) -> None: ...

    def remove(self, gone: Sequence[int]) -> None:
        """Forget the subscriptions that were made at these positions."""

    def prepare(self) -> bool:
        """Bring the table up to date; whether it holds any subscription."""

    def match_into(self, table: str, *, plain: bool) -> None:
        """Add the matches of the batch that lies in the table `quads` to a table with the columns of `MATCHES`. `plain`
        says that no number in the batch is an involved one."""

    def match_some(self, table: str, made: Sequence[int]) -> None:
        """The same for those subscriptions that were made at some positions, on one event."""

    def heavy(self, quads: int) -> Sequence[int]:
        """The positions of those events in the table `quads`, none of which has more than so many, that may be too
        much."""

    def alike(self) -> dict[int, list[int]]:
        """Where subscriptions were made, by the first of those that have the same constants."""

    def probe(self, made: int) -> int:
        """How many solutions one subscription has on the one event in `quads`, up to one more than are told; or whether
        there is any, 1 or 0, where solutions are not asked for."""


Making: TypeAlias = Callable[[duckdb.DuckDBPyConnection, Closures, Shape, str], Table]
"""Makes the table of a shape, with a name that nothing else has in the database."""


def plainly(duck: duckdb.DuckDBPyConnection, _: Closures, shape: Shape, name: str) -> Table:
    """Whatever the shape is, by its query alone."""
    return Constants(duck, shape, name)
