"""The SHACL worker: a process that validates events against shapes, and nothing else.

`python -m triplewire.rdf.shacl_worker` reads requests from standard input and writes answers to standard output: four
bytes of length, then JSON. Its memory is limited, and its parent kills it when a request takes too long. The validator
is slow to import.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import orjson
from pyshacl.entrypoints import apply_patches, assign_baked_in  # type: ignore[attr-defined]
from pyshacl.errors import ConstraintLoadError, ReportableRuntimeError, ShapeLoadError
from pyshacl.graph_abstraction import DataGraph
from pyshacl.shapes_graph import ShapesGraph
from pyshacl.validator import Validator
from rdflib import BNode, Graph, Literal, URIRef
from rdflib.namespace import SH
from rdflib.term import Node

from triplewire.model.errors import InputError, TriplewireError
from triplewire.model.terms import parse_literal
from triplewire.rdf.terms import SKOLEM_PREFIX

SHAPES_BYTES: Final = 1024 * 1024
"""The document of a stream's shapes, and a report on an event that does not conform."""

SHAPES_KNOWN: Final = 64
"""Shapes that the process which judges holds compiled, some megabytes each at worst."""

SHAPES_MEMORY_BYTES: Final = 1024 * 1024 * 1024
"""Address space of the process that judges."""

SHAPES_RESULTS: Final = 20
"""Violations that a problem document tells of one by one; the report has them all."""


SHAPE_ERRORS = (ShapeLoadError, ConstraintLoadError, ReportableRuntimeError)
"""What is wrong with shapes."""
_TOLD = {"focus": SH.focusNode, "path": SH.resultPath, "value": SH.value, "message": SH.resultMessage,
         "severity": SH.resultSeverity, "constraint": SH.sourceConstraintComponent}  # fmt: skip


@dataclass
class ShapeValidator:
    """Judges by the shapes that it was given, each compiled once."""

    _known: dict[str, ShapesGraph] = field(default_factory=dict)

    def learn(self, key: str, text: str) -> None:
        """Raises InputError for shapes that make no sense."""
        apply_patches()  # type: ignore[no-untyped-call]
        assign_baked_in()  # type: ignore[no-untyped-call]
        while len(self._known) >= SHAPES_KNOWN:
            del self._known[next(iter(self._known))]
        try:
            _try(ShapesGraph(_graph(text)))
            shapes = ShapesGraph(_graph(text))
            _run(shapes, Graph())
        except SHAPE_ERRORS as error:
            raise InputError(f"these are no shapes: {getattr(error, 'message', error)}") from None
        self._known[key] = shapes

    def judge(self, key: str, text: str) -> dict[str, Any] | None:
        """What an event's quads do wrong: `violations`, how many there are, `results`, the first of them, and `report`,
        as N-Triples. None where they conform. Raises InputError for what only now turns out to make no sense."""
        try:
            conforms, report, _ = _run(self._known[key], _graph(text))
        except SHAPE_ERRORS as error:
            raise InputError(f"these are no shapes: {getattr(error, 'message', error)}") from None
        if conforms:
            return None
        found = [_describe_result(report, each) for each in report.objects(None, SH.result)]
        lines = report.serialize(format="nt", encoding="utf-8").decode()
        told = sorted(found, key=str)[:SHAPES_RESULTS]
        return {"violations": len(found), "results": told, "report": lines[:SHAPES_BYTES]}


def _run(shapes: ShapesGraph, data: Graph, **options: Any) -> tuple[bool, Graph, str]:  # noqa: ANN401
    given = {"inplace": True, "advanced": False, **options}
    validator = Validator(DataGraph.from_rdflib_graph(data), shacl_graph=Graph(), options=given)
    validator.shacl_graph = shapes
    found: tuple[bool, Graph, str] = validator.run()  # type: ignore[no-untyped-call]
    return found


def _try(shapes: ShapesGraph) -> None:
    """Has every shape look at a node of which nothing is known: what makes no sense in it is found then."""
    named = [each.node for each in shapes.shapes if isinstance(each.node, URIRef)]
    if named:
        _run(shapes, Graph(), focus_nodes=[URIRef("urn:triplewire:nobody")], use_shapes=named)


def _describe_result(report: Graph, result: Node) -> dict[str, str]:
    found = {name: report.value(result, predicate) for name, predicate in _TOLD.items()}
    return {name: str(value) for name, value in found.items() if value is not None}


def _graph(text: str) -> Graph:
    """Triples as the validator has them. What was a blank node is one; it knows no triple terms: they are left out."""
    graph = Graph(bind_namespaces="none")
    for triple in _triples(text.split("\n")):
        graph.add(triple)
    return graph


def _triples(lines: Iterable[str]) -> Iterable[tuple[Node, Node, Node]]:
    for line in lines:
        subject, predicate, obj = line.split("\t")
        if not obj.startswith("<<"):
            yield _term(subject), _term(predicate), _term(obj)


def _term(text: str) -> Node:
    if text.startswith(f"<{SKOLEM_PREFIX}"):
        return BNode(text[1:-1].removeprefix("urn:triplewire:").replace(":", "-"))
    if text.startswith("<"):
        return URIRef(text[1:-1])
    found = parse_literal(text)
    if found.language:
        return Literal(found.lexical, lang=found.language)
    return Literal(found.lexical, datatype=URIRef(found.datatype), normalize=False)


# The worker: a process that judges events by shapes, and nothing else. It hears and answers over its standard streams:
# four bytes of length, then JSON. Whoever started it kills it when it takes too long.


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SHAPES_MEMORY_BYTES, SHAPES_MEMORY_BYTES))
    # What the validator might print must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    judge = ShapeValidator()
    _send(answers, {"ready": True})
    while (asked := _receive(sys.stdin.buffer)) is not None:
        _send(answers, _answer(judge, asked))


def _answer(judge: ShapeValidator, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        if asked.get("shapes") is not None:
            judge.learn(asked["key"], asked["shapes"])
        return {"verdicts": [judge.judge(asked["key"], text) for text in asked["events"]]}
    except TriplewireError as error:
        return {"error": str(error)}
    except (MemoryError, RecursionError) as error:
        return {"error": f"it takes too much: {type(error).__name__}"}


def _receive(source: BinaryIO) -> dict[str, Any] | None:
    head = source.read(4)
    if len(head) < 4:
        return None
    found: dict[str, Any] = orjson.loads(source.read(int.from_bytes(head)))
    return found


def _send(sink: BinaryIO, told: dict[str, Any]) -> None:
    data = orjson.dumps(told)
    sink.write(len(data).to_bytes(4) + data)
    sink.flush()


if __name__ == "__main__":
    main()
