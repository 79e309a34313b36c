"""Tables of the evaluator: the constants of a shape's subscriptions, a row for each, and the closure of all loaded
ontologies.

Both are tables of a DuckDB connection. Changes are collected and reach the table together, at the next `prepare`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Protocol, TypeAlias

import duckdb
import pyarrow as pa
from sqlglot import exp

from triplewire.matching.plans import MatchPlan, make_plan
from triplewire.matching.shapes import Shape
from triplewire.model import Subscription
from triplewire.model.errors import InputError
from triplewire.sparql import FACETS, facets_of, needs_exact_comparison, to_sql
from triplewire.sparql.entailment.owl_rl import ClosureRow, compute_closure
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology, ontology_from_change
from triplewire.storage.registry.ports import RegistryChange

_TOGETHER = 10_000
"""The most subscriptions that are collected before they are written: as rows of the table they take a fraction of
the memory."""


class ConstantTable:
    """The table of constants of one shape, and the SQL that joins it with a batch of quads: a `SubscriptionTable`."""

    def __init__(self, duck: duckdb.DuckDBPyConnection, shape: Shape, table: str) -> None:
        self._plan = make_plan(shape)
        self.columns = self.columns_alone = self._plan.columns
        self.lists = self._plan.lists
        self._duck = duck
        self._table = table
        self._created = False
        self._size = 0
        self._width = 0
        self._added: dict[int, Subscription] = {}
        self._plain = True
        self._planned = 0
        self._sql: dict[bool, str] = {}

    def add(self, subscription: Subscription) -> None:
        self._added[subscription.since] = subscription
        if len(self._added) >= _TOGETHER:
            self.prepare()

    def remove(self, gone: Sequence[int]) -> None:
        if self.prepare():
            sql = f"DELETE FROM {self._table} WHERE subscription IN (SELECT unnest(?))"
            ((count,),) = self._duck.execute(sql, [list(gone)]).fetchall()
            self._size -= count

    def prepare(self) -> bool:
        if self._added:
            self._insert([*self._added.values()])
            self._added = {}
        return self._size > 0

    def match_into(self, table: str, *, plain: bool) -> None:
        self._duck.execute(f"INSERT INTO {table} {self._query(plain and self._plain)}")

    def match_some(self, table: str, made: Sequence[int]) -> None:
        chosen = self._chosen(made)
        sql = self._plan.alone(chosen) if len(made) == 1 else self._plan.sql(chosen, plain=False, first=None)
        self._duck.execute(f"INSERT INTO {table} {sql}")

    def heavy(self, quads: int) -> Sequence[int]:
        if not self._plan.bound.possible(quads):
            return ()
        return [position for (position,) in self._duck.execute(self._plan.bound.sql()).fetchall()]

    def alike(self) -> dict[int, list[int]]:
        columns = ", ".join(f"k{index}" for index in range(self._width))
        groups = f"GROUP BY {columns}" if columns else ""
        sql = f"SELECT list(subscription ORDER BY subscription) FROM {self._table} {groups}"
        return {made[0]: made for (made,) in self._duck.execute(sql).fetchall()}

    def probe(self, made: int) -> int:
        ((count,),) = self._duck.execute(self._plan.probe(self._chosen([made]))).fetchall()
        return int(count)

    def _chosen(self, made: Sequence[int]) -> str:
        """The name of a table of the subscriptions that were made at these positions."""
        rows = f"SELECT * FROM {self._table} WHERE subscription IN (SELECT unnest(?))"
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE chosen AS {rows}", [list(made)])
        return "chosen"

    def _query(self, plain: bool) -> str:
        """The SQL, compiled on first use, and again when there are twice as many subscriptions."""
        if self._size > 2 * self._planned:
            self._planned, self._sql = self._size, {}
        if plain not in self._sql:
            self._sql[plain] = self._plan.sql(self._table, plain=plain, first=self._most_telling())
        return self._sql[plain]

    def _most_telling(self) -> int | None:
        """The pattern whose constants differ most between subscriptions: joined first, it leaves the fewest rows."""
        named = self._plan.naming
        if len(named) < 2:
            return None
        counts = ", ".join(f"count(DISTINCT ({', '.join(columns)}))" for columns in named.values())
        ((*distinct,),) = self._duck.execute(f"SELECT {counts} FROM {self._table}").fetchall()
        return max(zip(distinct, named, strict=True), key=lambda each: each[0])[1]

    def _insert(self, members: Sequence[Subscription]) -> None:
        self._duck.register("added", _rows(members))
        verb = f"INSERT INTO {self._table}" if self._created else f"CREATE TABLE {self._table} AS"
        self._duck.execute(f"{verb} {_facets_sql(self._plan, len(members[0].constants))}")
        self._duck.unregister("added")
        self._created, self._width = True, len(members[0].constants)
        self._size += len(members)
        self._plain = self._plain and self._plain_since(min(each.since for each in members))

    def _plain_since(self, first: int) -> bool:
        """Do doubles tell all numbers apart among the constants that were added from a position on?"""
        numbers = [index for index, facets in self._plan.facets.items() if "number" in facets]
        found = to_sql(exp.or_(exp.false(), *(needs_exact_comparison("c", f"k{index}") for index in numbers)), "duckdb")
        sql = f"SELECT count(*) FROM {self._table} AS c WHERE subscription >= ? AND ({found})"
        return self._duck.execute(sql, [first]).fetchall() == [(0,)]


def _rows(members: Sequence[Subscription]) -> pa.Table:
    terms = zip(*(each.constants for each in members), strict=True)
    columns = {f"k{index}": pa.array(values, pa.string()) for index, values in enumerate(terms)}
    return pa.table({"subscription": pa.array([each.since for each in members], pa.int64()), **columns})


def _facets_sql(plan: MatchPlan, width: int) -> str:
    """SQL for the new rows with the typed columns that the filters of the shape read."""
    wanted = plan.facets
    columns: list[exp.Expr] = [exp.column("subscription")]
    for index in range(width):
        columns.append(exp.column(f"k{index}"))
        facets = facets_of(exp.column(f"k{index}"))
        columns.extend(exp.alias_(facets[name], f"k{index}_{name}") for name in FACETS if name in wanted.get(index, ()))
    return to_sql(exp.select(*columns).from_("added"), "duckdb")


logger = logging.getLogger(__name__)

_TABLE = "CREATE OR REPLACE TABLE closure (relation VARCHAR, lower VARCHAR, upper VARCHAR)"


class OntologyClosure:
    """The table `closure` of a connection, with the closure of all loaded ontologies. Not thread-safe.

    Changes are collected and written together, at the next `prepare`. At first the table is empty.
    """

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._loaded: dict[str, LoadedOntology] = {}
        self._stale = False
        self.rows: Sequence[ClosureRow] = ()
        """The content of the table."""
        self._duck.execute(_TABLE)

    def apply(self, change: RegistryChange) -> bool:
        """Apply a change. Return whether it concerns an ontology, so that `prepare` has something to do."""
        if change.kind != ONTOLOGY:
            return False
        self._loaded.pop(change.key, None)
        if change.value is not None:
            self._loaded[change.key] = ontology_from_change(change)
        self._stale = True
        return True

    def prepare(self) -> bool:
        """Bring the table up to date. Return whether there were changes."""
        if not self._stale:
            return False
        self._duck.execute(_TABLE)
        self.rows = self._rows()
        columns = [pa.array(each, pa.string()) for each in zip(*self.rows, strict=True)]
        if columns:
            self._duck.register("fresh", pa.table(columns, names=["relation", "lower", "upper"]))
            self._duck.execute("INSERT INTO closure SELECT * FROM fresh")
            self._duck.unregister("fresh")
        self._stale = False
        return True

    def _rows(self) -> Sequence[ClosureRow]:
        """The closure of all ontologies together. If it is too large, those that were loaded last are left out, the
        same in every process: that is better than to stop matching."""
        loaded = sorted(self._loaded.values(), key=lambda each: each.version)
        while loaded:
            try:
                return _compute_closure(tuple(each.text for each in loaded))
            except InputError as error:
                logger.warning("the ontology %s is left out: %s", loaded.pop().name, error)
        return []


@lru_cache(maxsize=1)
def _compute_closure(texts: tuple[str, ...]) -> Sequence[ClosureRow]:
    """The closure, cached because all evaluators of a process have the same ontologies."""
    return compute_closure(triple for text in texts for triple in _triples(text))


def _triples(text: str) -> Iterator[tuple[str, str, str]]:
    for line in text.split("\n"):
        subject, predicate, object_ = line.split("\t")
        yield subject, predicate, object_


class SubscriptionTable(Protocol):
    """Subscriptions of a shape. Added ones are collected and written together, at the next `prepare`."""

    @property
    def columns(self) -> frozenset[str]:
        """The columns of `quads` that are read."""

    @property
    def columns_alone(self) -> frozenset[str]:
        """The columns that are read when only some subscriptions are matched."""

    @property
    def lists(self) -> bool:
        """Whether solutions are listed."""

    def add(self, subscription: Subscription) -> None: ...

    def remove(self, gone: Sequence[int]) -> None:
        """Remove the subscriptions that were made at these positions."""

    def prepare(self) -> bool:
        """Bring the table up to date. Return whether it has any subscription."""

    def match_into(self, table: str, *, plain: bool) -> None:
        """Add the matches of the batch in the table `quads` to a table with the columns of `MATCHES`. `plain` says
        that doubles tell all numbers of the batch apart."""

    def match_some(self, table: str, made: Sequence[int]) -> None:
        """The same for the subscriptions that were made at some positions, on one event."""

    def heavy(self, quads: int) -> Sequence[int]:
        """The positions of events, of at most so many quads, on which the joins may have too many rows."""

    def alike(self) -> dict[int, list[int]]:
        """Groups of subscriptions with the same constants, by the first of each."""

    def probe(self, made: int) -> int:
        """The number of solutions of one subscription on the one event in `quads`, up to one more than a
        notification may have; 1 or 0 if solutions are not asked for."""


TableFactory: TypeAlias = Callable[[duckdb.DuckDBPyConnection, OntologyClosure, Shape, str], SubscriptionTable]
"""Makes the table of a shape, with a name that nothing else has in the database."""


def make_plain_table(duck: duckdb.DuckDBPyConnection, _: OntologyClosure, shape: Shape, name: str) -> SubscriptionTable:
    """Whatever the shape is, by its query alone."""
    return ConstantTable(duck, shape, name)
