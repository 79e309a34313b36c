"""The oracle: what an engine that we did not write says about one event and one query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import pyoxigraph as ox

from triplewire.model import Event

Solution = tuple[tuple[str, str], ...]


def store(events: Iterable[Event]) -> ox.Store:
    """The events as named graphs of one store."""
    found = ox.Store()
    for event in events:
        lines = (f"{line.replace(chr(9), ' ')} <{event.id}> .\n" for line in event.text.split("\n"))
        found.extend(ox.parse("".join(lines).encode(), format=ox.RdfFormat.N_QUADS))
    return found


def solutions(events: Iterable[Event], sparql: str) -> Counter[Solution]:
    """The bag of solutions of a SELECT, the default graph being the union of all events."""
    answer = store(events).query(sparql, use_default_graph_as_union=True)
    assert isinstance(answer, ox.QuerySolutions)
    return bag_of(answer)


def bag_of(answer: ox.QuerySolutions) -> Counter[Solution]:
    names = sorted(variable.value for variable in answer.variables)
    return Counter(
        tuple((name, str(term)) for name in names if (term := solution[name]) is not None) for solution in answer
    )


def matches(event: Event, sparql: str) -> bool:
    return bool(solutions([event], sparql))


def bag(document: Mapping[str, Any]) -> Counter[Solution]:
    """The same bag, of a SPARQL JSON results document."""
    names = sorted(document["head"]["vars"])
    return Counter(
        tuple((name, _text(row[name])) for name in names if name in row) for row in document["results"]["bindings"]
    )


def _text(term: Mapping[str, str]) -> str:
    if term["type"] == "uri":
        return str(ox.NamedNode(term["value"]))
    if "xml:lang" in term:
        return str(ox.Literal(term["value"], language=term["xml:lang"]))
    return _normal(term["value"], term.get("datatype", _STRING))


@lru_cache(maxsize=10_000)
def _normal(lexical: str, datatype: str) -> str:
    """A literal as the oracle gives it back: it keeps values, so `007` comes back as `7`."""
    found = ox.Store()
    node = ox.NamedNode("urn:x")
    found.add(ox.Quad(node, node, ox.Literal(lexical, datatype=ox.NamedNode(datatype))))
    (quad,) = found
    return str(quad.object)


_STRING = "http://www.w3.org/2001/XMLSchema#string"
