"""Worlds: a few events, the relations that the compiler's SQL runs over, and pyoxigraph to say what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from typing import Any

import duckdb
import pyarrow as pa
import pyoxigraph as ox
from sqlglot import exp

from triplewire.model import ENTRIES, Event, EventHeaders
from triplewire.model.terms import TW, XSD
from triplewire.sparql import (
    Apply,
    Conjunction,
    Const,
    Expression,
    Node,
    Param,
    Pattern,
    Var,
    compile_event,
    compile_query,
    explode,
    facets_of,
    family_of,
    params_with_facets,
    parse_query,
    to_conjunction,
    to_sql,
)
from triplewire.sparql.algebra import Exists
from triplewire.sparql.dialects.duckdb import register_functions

Row = tuple[Any, ...]
PREFIXES = f"PREFIX xsd: <{XSD}>\nPREFIX tw: <{TW}>\nPREFIX : <http://example.org/>\n"


@dataclass(frozen=True)
class World:
    """Events at the positions 1, 2, … of the streams that are given with them."""

    events: tuple[Event, ...]
    streams: tuple[str, ...] = ()

    @classmethod
    def read(cls, trig: str) -> World:
        """Each named graph is an event; its quads keep their order."""
        graphs: dict[str, list[str]] = {}
        for quad in ox.parse((PREFIXES + trig).encode(), format=ox.RdfFormat.TRIG):
            graph = quad.graph_name
            assert isinstance(graph, ox.NamedNode)
            line = "\t".join(str(term) for term in (quad.subject, quad.predicate, quad.object))
            graphs.setdefault(graph.value, []).append(line)
        return cls(tuple(Event(name, "\n".join(dict.fromkeys(lines))) for name, lines in graphs.items()))

    @cached_property
    def entries(self) -> pa.Table:
        rows = [
            (position, self.stream(position), event.id, event.text, event.headers.source, event.headers.application)
            for position, event in enumerate(self.events, start=1)
        ]
        columns = list(zip(*rows, strict=True)) if rows else [()] * 6
        times = [_time(position) for position in range(1, len(rows) + 1)]
        arrays = [*columns, times, times, ["application/n-quads"] * len(rows), [None] * len(rows)]
        return pa.table([pa.array(each, field.type) for each, field in zip(arrays, ENTRIES, strict=True)], ENTRIES)

    def stream(self, position: int) -> str:
        return self.streams[position - 1] if self.streams else "city"

    def relations(self) -> duckdb.DuckDBPyConnection:
        """A connection in which `quads` and `events` are tables; all worlds share one, as making one is slow."""
        connection = _connection()
        connection.register("entries", self.entries)
        run(connection, f"CREATE OR REPLACE TABLE quads AS {_explode()}")
        headers = "position, graph, stream, source, application, time, received"
        run(connection, f"CREATE OR REPLACE TABLE events AS SELECT DISTINCT {headers} FROM quads")
        return connection

    def history(self, text: str) -> Counter[Row]:
        """The answer of the compiled query, as a bag of rows in the order of the projection."""
        return Counter(run(self.relations(), compile_query(parse_query(PREFIXES + text), "duckdb").sql))

    def oracle(self, text: str, *, headers: bool = False) -> Counter[Row]:
        """The answer of pyoxigraph, where the default graph is the set of all triples, with headers if asked for."""
        store = ox.Store()
        for position, event in enumerate(self.events, start=1):
            _load(store, event)
            if headers:
                store.extend(headers_of(event, self.stream(position), position))
        return answer(store, text)


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    register_functions(connection)
    return connection


@cache
def _explode() -> str:
    return to_sql(explode(), "duckdb")


def run(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    return connection.execute(sql).fetchall()


def answer(store: ox.Store, text: str) -> Counter[Row]:
    """In the order of the projection that our parser finds; an ASK is one row of one boolean."""
    found = store.query(PREFIXES + text)
    if isinstance(found, ox.QueryBoolean):
        return Counter([(bool(found),)])
    assert isinstance(found, ox.QuerySolutions)
    names = parse_query(PREFIXES + text).projection
    if not names:
        return Counter([(1,) for _ in found])
    return Counter(tuple(None if (term := row[name]) is None else str(term) for name in names) for row in found)


def single(event: Event) -> ox.Store:
    """A store that holds one event, as its default graph and as a named one."""
    store = ox.Store()
    _load(store, event)
    return store


def _load(store: ox.Store, event: Event) -> None:
    for quad in event.quads:
        line = f"{quad.subject} {quad.predicate} {quad.object}"
        store.load(f"{line} .\n{line} {quad.graph} .".encode(), format=ox.RdfFormat.N_QUADS)


def headers_of(event: Event, stream: str, position: int) -> list[ox.Quad]:
    """The triples that an event's headers make."""
    at = datetime.fromtimestamp(_time(position) / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    moment = ox.Literal(at, datatype=ox.NamedNode(XSD + "dateTime"))
    given = {"stream": stream, "source": event.headers.source, "application": event.headers.application}
    named: list[tuple[str, ox.Literal]] = [(name, ox.Literal(value)) for name, value in given.items() if value]
    named += [("time", moment), ("received", moment)]
    return [ox.Quad(ox.NamedNode(event.id), ox.NamedNode(TW + name), value) for name, value in named]


def _time(position: int) -> int:
    return (1_700_000_000 + position) * 1_000_000


def with_headers(event: Event, source: str | None, application: str | None) -> Event:
    return replace(event, headers=EventHeaders(source=source, application=application))


def conjunctive(text: str) -> Conjunction:
    """The query, which is a conjunction."""
    found = to_conjunction(parse_query(PREFIXES + text))
    assert found is not None
    return found


@dataclass(frozen=True)
class Shape:
    """A query with its constants lifted out, as matching does it."""

    query: Conjunction
    constants: tuple[str, ...]


def lift(query: Conjunction, *, typed: bool) -> Shape:
    """All constants but predicates become parameters, that state their family or not."""
    found: list[str] = []

    def node(each: Node) -> Node:
        if not isinstance(each, Const):
            return each
        found.append(each.term)
        return Param(len(found) - 1, family_of(each.term) if typed else None)

    def tree(each: Expression) -> Expression:
        assert not isinstance(each, Exists)
        return Apply(each.op, tuple(tree(part) for part in each.args)) if isinstance(each, Apply) else node(each)

    patterns = tuple(
        Pattern(node(each.subject), each.predicate, node(each.object), node(each.graph) if each.graph else None)
        for each in query.patterns
    )
    return Shape(replace(query, patterns=patterns, filters=tuple(map(tree, query.filters))), tuple(found))


def subscribed(shape: Shape, *, solutions: bool) -> str:
    """The SQL of a subscription, with a table of constants for it alone that has only the columns that it reads."""
    columns = [exp.alias_(exp.cast(exp.Literal.number(7), "BIGINT"), "subscription")]
    compiled = compile_event(shape.query, solutions=solutions)
    for index, facets in params_with_facets(compiled).items():
        term = exp.Literal.string(shape.constants[index])
        known = {"term": term, **facets_of(term, facets - {"term"})}
        names = {facet: f"k{index}" if facet == "term" else f"k{index}_{facet}" for facet in sorted(facets)}
        columns += [exp.alias_(known[facet], name) for facet, name in names.items()]
    constants = to_sql(exp.select(*columns), "duckdb")
    return f"WITH constants AS ({constants}) {to_sql(compiled, 'duckdb')}"


def matches(world: World, shape: Shape) -> dict[int, Counter[tuple[int, ...]]]:
    """For each position that matches the bag of solutions, each as the numbers of the quads it took."""
    found = run(world.relations(), subscribed(shape, solutions=True))
    width = len(shape.query.patterns)
    return {int(position): Counter(_chunks(numbers, width)) for position, _, numbers in found}


def _chunks(numbers: Sequence[int], width: int) -> list[tuple[int, ...]]:
    return [tuple(numbers[start : start + width]) for start in range(0, len(numbers), width)]


def expanded(event: Event, query: Conjunction, numbers: tuple[int, ...]) -> Row:
    """The projected terms of a solution that is given as quad numbers."""
    bound: dict[str, str] = {}
    for pattern, number in zip(query.patterns, numbers, strict=True):
        quad = event.quads[number]
        pairs = ((pattern.subject, quad.subject), (pattern.predicate, quad.predicate), (pattern.object, quad.object))
        for node, term in (*pairs, (pattern.graph, quad.graph)):
            if isinstance(node, Var):
                assert bound.setdefault(node.name, term) == term, "a variable is bound to two terms"
    return tuple(bound.get(name) for name in query.projection) or (1,)
