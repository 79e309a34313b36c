"""A bare connection that matches filters against events, without a registry or an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp

from triplewire.matching.filters import document_query
from triplewire.matching.shapes import LiftedShape, lift
from triplewire.matching.tables import OntologyClosure
from triplewire.model import Event, EventHeaders
from triplewire.rdf import TURTLE, decode
from triplewire.sparql import FACETS, Conjunction, compile_event, compile_subscription, explode, facets_of, to_sql
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.storage.log.appending import entries_table
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange

EX = "http://example.org/"
PROLOGUE = f"""@prefix ex: <{EX}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""

Document = Mapping[str, Any]


def event(turtle: str, id: str = f"{EX}event") -> Event:
    (found,) = decode((PROLOGUE + turtle).encode(), TURTLE, EventHeaders())
    return Event(id, found.text)


def loaded(turtle: str, name: str = "test", position: int = 1) -> RegistryChange:
    """The change that loads an ontology."""
    text = event(turtle).text
    return RegistryChange(position, ONTOLOGY, name, {"text": text, "triples": 0, "classes": 0, "properties": 0})


class World:
    """Events of a batch, at the positions 0, 1, …, and ontologies."""

    def __init__(self, events: Sequence[Event], ontologies: Iterable[RegistryChange] = ()) -> None:
        self.duck = duckdb.connect(config={"threads": 1})
        register_functions(self.duck)
        self.closures = OntologyClosure(self.duck)
        for each in ontologies:
            self.closures.apply(each)
        self.closures.prepare()
        rows = [
            (at, "test", each.id, each.text, None, None, 0, 0, "text/turtle", None) for at, each in enumerate(events)
        ]
        self.duck.register("entries", entries_table([rows]))
        self.duck.execute(f"CREATE TABLE quads AS {to_sql(explode('entries'), 'duckdb')}")
        self.duck.execute("CREATE VIEW events AS SELECT * FROM quads WHERE quad = 0")

    def matches(self, documents: Sequence[Document]) -> set[tuple[int, int]]:
        """Position of the event, number of the document."""
        shapes: dict[str, list[tuple[int, LiftedShape]]] = {}
        for number, document in enumerate(documents):
            lifted = lift(document_query({"prefixes": {"ex": EX}, **document}), solutions=False)
            shapes.setdefault(lifted.shape.key, []).append((number, lifted))
        return {pair for members in shapes.values() for pair in self._matches(members)}

    def _matches(self, members: list[tuple[int, LiftedShape]]) -> list[tuple[int, int]]:
        constants = zip(*(lifted.constants for _, lifted in members), strict=True)
        columns = {f"k{at}": pa.array(terms, pa.string()) for at, terms in enumerate(constants)}
        self.duck.register("given", pa.table({"subscription": [number for number, _ in members], **columns}))
        facets = [
            exp.alias_(sql, f"{name}_{facet}")
            for name in columns
            for facet, sql in facets_of(exp.column(name), FACETS).items()
        ]
        made = to_sql(exp.select(exp.Star(), *facets).from_("given"), "duckdb")
        self.duck.execute(f"CREATE OR REPLACE TABLE constants AS {made}")
        return self.duck.execute(compiled(members[0][1])).fetchall()


def compiled(lifted: LiftedShape) -> str:
    query = lifted.shape.query
    if isinstance(query, Conjunction):
        return to_sql(compile_event(query, solutions=False), "duckdb")
    return to_sql(compile_subscription(query, solutions=False), "duckdb")


def constraint(attribute: str, op: str, value: object, **others: object) -> dict[str, object]:
    return {"attribute": attribute, "op": op, "value": value, **others}


def holds(world: World, *constraints: Mapping[str, object]) -> bool:
    """Whether a filter of these constraints holds for the first event."""
    return (0, 0) in world.matches([{"filter": list(constraints)}])
