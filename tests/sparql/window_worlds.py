"""Panes: what the windows of a query hold, what was published before, and pyoxigraph to say what is right.

The oracle has the background as its default graph, and each window as a named graph, so that GRAPH is its WINDOW.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import duckdb
import pyoxigraph as ox

from tests.sparql.worlds import PREFIXES, Row, World, headers_of, run
from triplewire.model import Event
from triplewire.sparql import CompiledQuery, Registration, compile_windows, explode, parse_registration, to_sql

OUTSIDE = "urn:x:window:"


@dataclass(frozen=True)
class Panes:
    """The windows `<w0>`, `<w1>`, … and, outside of them, the background."""

    windows: tuple[World, ...]
    background: World

    def registration(self, text: str) -> Registration:
        """Of a query whose pattern starts at its first WHERE. Only the windows that it uses are declared."""
        used = [name for number in range(len(self.windows)) if f"WINDOW <{(name := f'w{number}')}>" in text]
        declared = " ".join(f"FROM NAMED WINDOW <{name}> ON <home> [RANGE PT10S]" for name in used)
        return parse_registration(PREFIXES + text.replace("WHERE", f"{declared} WHERE", 1))

    def answer(self, text: str) -> Counter[Row]:
        registration = self.registration(text)
        return Counter(run(self.relations(registration), self.compiled(registration).sql))

    def compiled(self, registration: Registration) -> CompiledQuery:
        return compile_windows(registration, "duckdb")

    def relations(self, registration: Registration) -> duckdb.DuckDBPyConnection:
        """A connection in which each window that is declared has its relation."""
        connection = self.background.relations()
        for number, clause in enumerate(registration.windows):
            connection.register("entries", self.windows[int(clause.name[1:])].entries)
            run(connection, f"CREATE OR REPLACE TABLE window_{number} AS {to_sql(explode(), 'duckdb')}")
        return connection

    def oracle(self, text: str) -> Counter[Row]:
        found = self.store(headers="tw:" in text).query(PREFIXES + text.replace("WINDOW <", f"GRAPH <{OUTSIDE}"))
        if isinstance(found, ox.QueryTriples):
            return Counter((str(each.subject), str(each.predicate), str(each.object)) for each in found)
        assert isinstance(found, ox.QuerySolutions)
        names = self.registration(text).query.projection
        return Counter(tuple(None if (term := row[name]) is None else str(term) for name in names) for row in found)

    def store(self, *, headers: bool) -> ox.Store:
        store = ox.Store()
        _load(store, self.background, "", headers=headers)
        for number, window in enumerate(self.windows):
            _load(store, window, f"<{OUTSIDE}w{number}>", headers=headers)
        return store


def _load(store: ox.Store, world: World, graph: str, *, headers: bool) -> None:
    for position, event in enumerate(world.events, start=1):
        lines = [f"{quad.subject} {quad.predicate} {quad.object}" for quad in event.quads]
        lines += [
            f"{each.subject} {each.predicate} {each.object}" for each in _headers(world, position, event, headers)
        ]
        store.load("\n".join(f"{line} {graph} ." for line in lines).encode(), format=ox.RdfFormat.N_QUADS)


def _headers(world: World, position: int, event: Event, wanted: bool) -> list[ox.Quad]:
    return headers_of(event, world.stream(position), position) if wanted else []
