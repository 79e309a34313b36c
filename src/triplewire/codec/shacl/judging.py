"""Judging: whether events conform to shapes. Slow: imported only by the process that does nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pyshacl.entrypoints import (
    apply_patches,  # type: ignore[attr-defined]
    assign_baked_in,  # type: ignore[attr-defined]
)
from pyshacl.errors import ConstraintLoadError, ReportableRuntimeError, ShapeLoadError
from pyshacl.graph_abstraction import DataGraph
from pyshacl.shapes_graph import ShapesGraph
from pyshacl.validator import Validator
from rdflib import BNode, Graph, Literal, URIRef
from rdflib.namespace import SH
from rdflib.term import Node

from triplewire.codec.skolems import PREFIX
from triplewire.config import limits
from triplewire.model.errors import InputError
from triplewire.model.terms import parse_literal

FAULTS = (ShapeLoadError, ConstraintLoadError, ReportableRuntimeError)
"""What is wrong with shapes."""
_TOLD = {"focus": SH.focusNode, "path": SH.resultPath, "value": SH.value, "message": SH.resultMessage,
         "severity": SH.resultSeverity, "constraint": SH.sourceConstraintComponent}  # fmt: skip


@dataclass
class Judge:
    """Judges by the shapes that it was given, each compiled once."""

    _known: dict[str, ShapesGraph] = field(default_factory=dict)

    def learn(self, key: str, text: str) -> None:
        """Raises InputError for shapes that make no sense."""
        apply_patches()  # type: ignore[no-untyped-call]
        assign_baked_in()  # type: ignore[no-untyped-call]
        while len(self._known) >= limits.SHAPES_KNOWN:
            del self._known[next(iter(self._known))]
        try:
            _try(ShapesGraph(_graph(text)))
            shapes = ShapesGraph(_graph(text))
            _run(shapes, Graph())
        except FAULTS as error:
            raise InputError(f"these are no shapes: {getattr(error, 'message', error)}") from None
        self._known[key] = shapes

    def judge(self, key: str, text: str) -> dict[str, Any] | None:
        """What an event's quads do wrong: `violations`, how many there are, `results`, the first of them, and `report`,
        as N-Triples. None where they conform. Raises InputError for what only now turns out to make no sense."""
        try:
            conforms, report, _ = _run(self._known[key], _graph(text))
        except FAULTS as error:
            raise InputError(f"these are no shapes: {getattr(error, 'message', error)}") from None
        if conforms:
            return None
        found = [_told(report, each) for each in report.objects(None, SH.result)]
        lines = report.serialize(format="nt", encoding="utf-8").decode()
        told = sorted(found, key=str)[: limits.SHAPES_RESULTS]
        return {"violations": len(found), "results": told, "report": lines[: limits.SHAPES_BYTES]}


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


def _told(report: Graph, result: Node) -> dict[str, str]:
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
    if text.startswith(f"<{PREFIX}"):
        return BNode(text[1:-1].removeprefix("urn:triplewire:").replace(":", "-"))
    if text.startswith("<"):
        return URIRef(text[1:-1])
    found = parse_literal(text)
    if found.language:
        return Literal(found.lexical, lang=found.language)
    return Literal(found.lexical, datatype=URIRef(found.datatype), normalize=False)
