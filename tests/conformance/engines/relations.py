"""Relations: a dataset as the table `quads` that compiled queries read, an event for each graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache

import duckdb
import pyarrow as pa
import pyoxigraph as ox

from tests.conformance.datasets import Dataset
from triplewire.model import ENTRIES
from triplewire.sparql import Query, explode, to_sql
from triplewire.sparql import algebra as sparql

DEFAULT = "urn:x-default"
"""The graph that holds the default data: ours is the union of all graphs unless a query says otherwise."""
_TIME = 1_700_000_000_000_000
"""When all was published; the suites know of no time."""


def make(connection: duckdb.DuckDBPyConnection, dataset: Dataset) -> None:
    """Replace `quads` and `events` by those of the dataset."""
    connection.register("entries", _entries(dataset))
    connection.execute(f"CREATE OR REPLACE TABLE quads AS {_explode()}")
    headers = "position, graph, stream, source, application, time, received"
    connection.execute(f"CREATE OR REPLACE TABLE events AS SELECT DISTINCT {headers} FROM quads")


def scoped(query: Query, dataset: Dataset) -> Query:
    """The query on the graphs that it names, or on the dataset where it names none."""
    named = query.dataset
    if named.default is None and named.named is None:
        given = sparql.Dataset((f"<{DEFAULT}>",), tuple(f"<{name}>" for name in dataset.named))
    else:
        given = sparql.Dataset(named.default or (), named.named or ())
    return replace(query, dataset=given)


@cache
def _explode() -> str:
    return to_sql(explode(), "duckdb")


def _entries(dataset: Dataset) -> pa.Table:
    rows = [
        (position, "w3c", name, text, None, None, _TIME, _TIME, "application/n-quads", None)
        for position, (name, text) in enumerate(_events(dataset), start=1)
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(ENTRIES)
    return pa.table([pa.array(each, field.type) for each, field in zip(columns, ENTRIES, strict=True)], ENTRIES)


def _events(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """The name and the text of each graph that holds anything: there are no empty events."""
    for name, triples in ((DEFAULT, dataset.default), *dataset.named.items(), *dataset.spare.items()):
        if triples:
            yield name, _text(triples)


def _text(triples: Iterable[ox.Triple]) -> str:
    return "\n".join(dict.fromkeys(f"{each.subject}\t{each.predicate}\t{each.object}" for each in triples))
