"""Solutions as RDF, in the vocabulary that the SPARQL test suites use for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triplewire.model.terms import RDF_TYPE, XSD, XSD_STRING, iri, literal

_RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"


def result_set(results: Mapping[str, Any], name: str) -> str:
    """A SPARQL JSON results document as N-Triples. `name` begins the labels of its blank nodes."""
    return "".join(f"{subject} {predicate} {obj} .\n" for subject, predicate, obj in _triples(results, f"_:{name}"))


def _triples(results: Mapping[str, Any], root: str) -> Iterator[tuple[str, str, str]]:
    yield root, RDF_TYPE, _rs("ResultSet")
    if "boolean" in results:
        yield root, _rs("boolean"), literal(str(results["boolean"]).lower(), XSD + "boolean")
        return
    for variable in results["head"]["vars"]:
        yield root, _rs("resultVariable"), literal(variable)
    for number, solution in enumerate(results["results"]["bindings"]):
        row = f"{root}r{number}"
        yield root, _rs("solution"), row
        for place, (variable, value) in enumerate(solution.items()):
            binding = f"{row}b{place}"
            yield row, _rs("binding"), binding
            yield binding, _rs("variable"), literal(variable)
            yield binding, _rs("value"), _term(value)


def _term(value: Mapping[str, str]) -> str:
    if value["type"] == "uri":
        return iri(value["value"])
    return literal(value["value"], value.get("datatype", XSD_STRING), value.get("xml:lang"))


def _rs(name: str) -> str:
    return iri(_RS + name)
