"""Results: answers as values, and how the expected ones are read from every format that suites use."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyoxigraph as ox

from tests.conformance.graphs import RDF, Graph, Resource, Term

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"


@dataclass(frozen=True)
class Rows:
    """A bag of solutions, or a sequence where `ordered`: then the place of each row counts."""

    names: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]
    ordered: bool = False


@dataclass(frozen=True)
class Cells:
    """Solutions as CSV keeps them: the text of terms, empty where there is none."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Triples:
    """A graph."""

    triples: frozenset[ox.Triple]


Answer: TypeAlias = bool | Rows | Triples
Expected: TypeAlias = Answer | Cells

_RESULTS: Mapping[str, ox.QueryResultsFormat] = {
    ".srx": ox.QueryResultsFormat.XML,
    ".srj": ox.QueryResultsFormat.JSON,
    ".json": ox.QueryResultsFormat.JSON,
    ".tsv": ox.QueryResultsFormat.TSV,
}


def read(path: Path) -> Expected:
    """What a file says the answer is, by its extension."""
    extension = path.suffix.lower()
    if extension == ".csv":
        return _cells(path)
    if extension in _RESULTS:
        return answer(ox.parse_query_results(path=path, format=_RESULTS[extension]))
    return _graph(Graph.read(path))


def answer(found: ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples) -> Answer:
    """The value of what pyoxigraph gives."""
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    if isinstance(found, ox.QueryTriples):
        return Triples(frozenset(found))
    names = tuple(variable.value for variable in found.variables)
    return Rows(names, tuple(tuple(row[name] for name in names) for row in found))


def _cells(path: Path) -> Cells | bool:
    with path.open(encoding="utf-8", newline="") as file:
        names, *rows = list(csv.reader(file)) or [[]]
    # A row of one empty cell is an empty line, which the reader takes for no cell.
    return Cells(tuple(names), tuple(tuple(row) if row else ("",) * len(names) for row in rows))


def _graph(graph: Graph) -> Answer:
    sets = graph.subjects(RDF + "type", ox.NamedNode(RS + "ResultSet"))
    if not sets:
        return Triples(frozenset(quad.triple for quad in graph.statements))
    truth = graph.value(sets[0], RS + "boolean")
    return truth.value in ("true", "1") if isinstance(truth, ox.Literal) else _solutions(graph, sets[0])


def _solutions(graph: Graph, node: Resource) -> Rows:
    """A result set that is written in RDF; it is ordered if its solutions are numbered."""
    names = tuple(sorted(_value(each) for each in graph.values(node, RS + "resultVariable")))
    solutions = graph.resources(node, RS + "solution")
    numbers = {each: int(_value(graph.value(each, RS + "index")) or 0) for each in solutions}
    rows = [_bindings(graph, each) for each in sorted(solutions, key=numbers.__getitem__)]
    names = tuple(dict.fromkeys((*names, *(name for row in rows for name in row))))
    ordered = bool(rows) and all(numbers.values())
    return Rows(names, tuple(tuple(row.get(name) for name in names) for row in rows), ordered)


def _bindings(graph: Graph, solution: Resource) -> dict[str, Term]:
    found = {}
    for binding in graph.resources(solution, RS + "binding"):
        value = graph.value(binding, RS + "value")
        if value is not None:
            found[_value(graph.value(binding, RS + "variable"))] = value
    return found


def _value(term: Term | None) -> str:
    return term.value if isinstance(term, ox.Literal) else ""
