"""Constants: the subscriptions of one shape as a table, a row for each, a column for each parameter."""

from __future__ import annotations

import duckdb
import pyarrow as pa
from sqlglot import exp

from triplewire.matching.shapes import Shape
from triplewire.model import END, MATCHES, Subscription
from triplewire.sparql import compile_event, facets_of, params_with_facets, to_sql

_OWN = pa.schema(
    [
        pa.field("subscription", pa.int64()),
        pa.field("since", pa.int64()),
        pa.field("until", pa.int64()),
        pa.field("stream", pa.string()),
    ]
)


class Constants:
    """The table of one shape and the query that joins it with a batch of quads.

    Changes are collected and reach the table together, at the next `prepare`.
    """

    def __init__(self, duck: duckdb.DuckDBPyConnection, shape: Shape, key: str) -> None:
        self.shape = shape
        self._duck = duck
        self._table = f"constants_{key}"
        self._size = 0
        self._endings: list[int] = []
        self._added: dict[int, tuple[Subscription, int]] = {}
        self._ended: dict[int, int] = {}
        self._created = False
        self._sql = _matching_sql(shape, self._table)

    def add(self, subscription: Subscription) -> None:
        self._added[subscription.since] = (subscription, END)

    def end(self, since: int, until: int) -> None:
        """The subscription made at `since` sees nothing from position `until` on. Called in order of `until`."""
        self._endings.append(until)
        if since in self._added:
            self._added[since] = (self._added[since][0], until)
        else:
            self._ended[since] = until

    def forget(self, before: int) -> None:
        """Drop the subscriptions that ended below a position."""
        if self._endings and self._endings[0] < before and self.prepare():
            (gone,) = self._duck.execute(f"DELETE FROM {self._table} WHERE until < ?", [before]).fetchone() or (0,)
            self._size -= gone
            self._endings = [each for each in self._endings if each >= before]

    def prepare(self) -> bool:
        """Bring the table up to date; whether it holds any subscription."""
        if self._added:
            self._insert([*self._added.values()])
            self._added = {}
        for since, until in self._ended.items():
            self._duck.execute(f"UPDATE {self._table} SET until = ? WHERE subscription = ?", [until, since])
        self._ended = {}
        return self._size > 0

    def match(self) -> pa.Table:
        """The matches of the batch that lies in the table `quads`, as a `MATCHES` table in no order."""
        return self._duck.execute(self._sql).to_arrow_table().cast(MATCHES)

    def _insert(self, members: list[tuple[Subscription, int]]) -> None:
        rows = _rows(members)
        self._duck.register("added", rows)
        selected = _with_facets(self.shape, rows.num_columns - len(_OWN))
        verb = f"INSERT INTO {self._table}" if self._created else f"CREATE TABLE {self._table} AS"
        self._duck.execute(f"{verb} {selected}")
        self._duck.unregister("added")
        self._created = True
        self._size += rows.num_rows


def _rows(members: list[tuple[Subscription, int]]) -> pa.Table:
    own = [(each.since, each.since, until, each.stream) for each, until in members]
    terms = list(zip(*(each.constants for each, _ in members), strict=True))
    columns = [*(pa.array(values, field.type) for values, field in zip(zip(*own, strict=True), _OWN, strict=True))]
    names = [*_OWN.names, *(f"k{index}" for index in range(len(terms)))]
    return pa.table([*columns, *(pa.array(each, pa.string()) for each in terms)], names=names)


def _with_facets(shape: Shape, width: int) -> str:
    """The rows that came in, with the typed columns that the shape's filters read."""
    wanted = params_with_facets(shape.query)
    columns: list[exp.Expression] = [exp.column(name) for name in _OWN.names]
    for index in range(width):
        columns.append(exp.column(f"k{index}"))
        facets = facets_of(exp.column(f"k{index}"))
        columns.extend(facets[name].as_(f"k{index}_{name}") for name in sorted(wanted.get(index, ())))
    return to_sql(exp.select(*columns).from_("added"), "duckdb")


def _matching_sql(shape: Shape, table: str) -> str:
    compiled = compile_event(shape.query, solutions=shape.solutions)
    for found in compiled.find_all(exp.Table):
        if found.name == "constants":
            found.set("this", exp.to_identifier(table))
    columns = ("position", "subscription", "solutions" if shape.solutions else "CAST(NULL AS INTEGER[]) AS solutions")
    return f"SELECT {', '.join(columns)} FROM ({to_sql(compiled, 'duckdb')})"
