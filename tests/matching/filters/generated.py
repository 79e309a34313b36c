"""Events, ontologies and filters drawn at random, small enough to meet each other often."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from tests.matching.filters.reference import FIRST, NIL, REST, Triple
from tests.matching.filters.worlds import EX
from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE, XSD, iri, literal, parse_literal
from triplewire.sparql.entailment.ontologies import SUB_CLASS, SUB_PROPERTY

CLASSES, PROPERTIES, THINGS = ([iri(f"{EX}{kind}{at}") for at in range(3)] for kind in ("C", "P", "t"))
ATTRIBUTES = [iri(f"{EX}a{at}") for at in range(2)]
STRINGS = [literal(text) for text in ("", "a", "ab", "ba", "b c")]
NUMBERS = [
    literal("1", XSD + "integer"),
    literal("2", XSD + "integer"),
    literal("2", XSD + "decimal"),
    literal("2.5", XSD + "decimal"),
    literal("3", XSD + "double"),
]
ILL = literal("many", XSD + "integer")
NAMES = [*CLASSES, *PROPERTIES, *THINGS]

CONTENT = ["=", "!=", "<", "<=", ">", ">=", ">*", "*<", "*"]
ONTOLOGICAL = ["@>", "@<", "@~", "@!~", "@=", "@!=", "@*"]


def ontology(random: Random) -> set[Triple]:
    """Cycles among classes and among properties, too."""
    return {
        *((random.choice(CLASSES), SUB_CLASS, random.choice(CLASSES)) for _ in range(4)),
        *((random.choice(PROPERTIES), SUB_PROPERTY, random.choice(PROPERTIES)) for _ in range(3)),
        *((random.choice(THINGS), RDF_TYPE, random.choice(CLASSES)) for _ in range(3)),
        *((random.choice(THINGS), random.choice(PROPERTIES), random.choice(THINGS)) for _ in range(5)),
    }


def event(random: Random, number: int) -> Event:
    """Some triples, a few of them twice; some objects are lists."""
    lines = [line for at in range(random.randint(1, 5)) for line in _triple(random, at)]
    return Event(f"{EX}event/{number}", "\n".join(lines + lines[: random.randint(0, 1)]))


def _triple(random: Random, at: int) -> list[str]:
    start = f"{iri(f'{EX}s{random.randint(0, 1)}')}\t{random.choice(ATTRIBUTES)}"
    if random.random() < 0.75:
        return [f"{start}\t{_value(random)}"]
    cells = [iri(f"{EX}cell{at}-{each}") for each in range(random.randint(0, 3))] + [NIL]
    held = [f"{cell}\t{FIRST}\t{_value(random)}" for cell in cells[:-1]]
    return [
        f"{start}\t{cells[0]}",
        *held,
        *(f"{cell}\t{REST}\t{after}" for cell, after in pairwise(cells)),
    ]


def _value(random: Random) -> str:
    return random.choice([random.choice(NAMES), random.choice(NAMES), random.choice([*NUMBERS, *STRINGS, ILL])])


def document(random: Random) -> dict[str, Any]:
    if random.random() < 0.2:
        return {"filters": [[_constraint(random) for _ in range(random.randint(1, 2))] for _ in range(2)]}
    return {"filter": [_constraint(random) for _ in range(random.randint(1, 3))]}


def bagged(random: Random) -> dict[str, Any]:
    """One filter with a bag, and perhaps with more."""
    return {"filter": [_bag(random), *(_constraint(random) for _ in range(random.randint(0, 2)))]}


def content(random: Random) -> dict[str, Any]:
    return {"filter": [_single(random, random.choice(CONTENT)) for _ in range(random.randint(1, 2))]}


def _constraint(random: Random) -> dict[str, Any]:
    op = random.choice([random.choice(CONTENT), random.choice(ONTOLOGICAL)])
    return _single(random, op) if random.random() < 0.6 else _bag(random, op)


def _bag(random: Random, op: str | None = None) -> dict[str, Any]:
    op = op or random.choice([random.choice(CONTENT), random.choice(ONTOLOGICAL)])
    bag = random.choice(["#=", "#<", "#>"])
    values = [_operand(random, op) for _ in range(random.randint(0, 3))]
    return {"attribute": _address(random.choice(ATTRIBUTES)), "op": f"{bag}/{op}", "value": values}


def _single(random: Random, op: str) -> dict[str, Any]:
    strict = {"strict": random.random() < 0.5} if op in ("@>", "@<") else {}
    return {"attribute": _address(random.choice(ATTRIBUTES)), "op": op, "value": _operand(random, op), **strict}


def _operand(random: Random, op: str) -> object:
    if op == "@*":
        return [_address(random.choice(PROPERTIES)), _address(random.choice(THINGS))]
    if op.startswith("@"):
        return _address(random.choice(NAMES))
    texts = op in (">*", "*<", "*")
    kinds = [STRINGS] if texts else [STRINGS, NUMBERS, NAMES] if op in ("=", "!=") else [STRINGS, NUMBERS]
    return _json(random.choice(random.choice(kinds)))


def _json(term: str) -> object:
    if term.startswith("<"):
        return {"@id": _address(term)}
    parts = parse_literal(term)
    return {"@value": parts.lexical, "@type": parts.datatype}


def _address(term: str) -> str:
    return term[1:-1]
