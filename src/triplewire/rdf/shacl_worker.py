"""The SHACL worker: a process that validates events against shapes, and nothing else.

`python -m triplewire.rdf.shacl_worker SOCKET` speaks the protocol of `config.workers`. A request is JSON: `key`, the
`shapes` of that key unless they are known, and the texts of `events`. Its memory is limited, and the edge kills it when
a request takes too long. The validator is slow to import.
"""

from __future__ import annotations

import resource
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from pyshacl.entrypoints import apply_patches, assign_baked_in  # type: ignore[attr-defined]
from pyshacl.errors import ConstraintLoadError, ReportableRuntimeError, ShapeLoadError
from pyshacl.graph_abstraction import DataGraph
from pyshacl.shapes_graph import ShapesGraph
from pyshacl.validator import Validator
from rdflib import BNode, Graph, Literal, URIRef
from rdflib.namespace import SH
from rdflib.term import Node

from triplewire.config.workers import FrameKind, encode_error_frame, encode_frame, encode_json_frame, read_frame
from triplewire.model.errors import InputError, TriplewireError
from triplewire.model.terms import parse_literal
from triplewire.rdf.shacl import SHAPES_BYTES
from triplewire.rdf.terms import SKOLEM_PREFIX

SHAPES_KNOWN: Final = 64
"""Shapes that the worker holds compiled, some megabytes each at worst."""

SHAPES_MEMORY_BYTES: Final = 1024 * 1024 * 1024
"""Address space of the worker."""

SHAPES_RESULTS: Final = 20
"""Violations that a problem document lists one by one; the report has them all."""


SHAPE_ERRORS = (ShapeLoadError, ConstraintLoadError, ReportableRuntimeError)
"""Errors of pyshacl for shapes that are not valid."""
_RESULT_FIELDS = {"focus": SH.focusNode, "path": SH.resultPath, "value": SH.value, "message": SH.resultMessage,
         "severity": SH.resultSeverity, "constraint": SH.sourceConstraintComponent}  # fmt: skip


@dataclass
class ShapeValidator:
    """Validates events against shapes, each compiled once."""

    _known: dict[str, ShapesGraph] = field(default_factory=dict)

    def load(self, key: str, text: str) -> None:
        """Compile shapes under a key. Raises InputError for shapes that are not valid."""
        apply_patches()  # type: ignore[no-untyped-call]
        assign_baked_in()  # type: ignore[no-untyped-call]
        while len(self._known) >= SHAPES_KNOWN:
            del self._known[next(iter(self._known))]
        try:
            _probe(ShapesGraph(_graph(text)))
            shapes = ShapesGraph(_graph(text))
            _run(shapes, Graph())
        except SHAPE_ERRORS as error:
            raise InputError(f"the shapes are not valid: {getattr(error, 'message', error)}") from None
        self._known[key] = shapes

    def validate(self, key: str, text: str) -> dict[str, Any] | None:
        """Return None for an event that conforms, else `violations`, their number, `results`, the first of them, and
        `report`, as N-Triples. Raises InputError for shapes that only now turn out not to be valid."""
        try:
            conforms, report, _ = _run(self._known[key], _graph(text))
        except SHAPE_ERRORS as error:
            raise InputError(f"the shapes are not valid: {getattr(error, 'message', error)}") from None
        if conforms:
            return None
        results = [_describe_result(report, each) for each in report.objects(None, SH.result)]
        lines = report.serialize(format="nt", encoding="utf-8").decode()
        first = sorted(results, key=str)[:SHAPES_RESULTS]
        return {"violations": len(results), "results": first, "report": lines[:SHAPES_BYTES]}


def _run(shapes: ShapesGraph, data: Graph, **options: Any) -> tuple[bool, Graph, str]:  # noqa: ANN401
    given = {"inplace": True, "advanced": False, **options}
    validator = Validator(DataGraph.from_rdflib_graph(data), shacl_graph=Graph(), options=given)
    validator.shacl_graph = shapes
    found: tuple[bool, Graph, str] = validator.run()  # type: ignore[no-untyped-call]
    return found


def _probe(shapes: ShapesGraph) -> None:
    """Validate an unknown node against every shape, which raises the errors of malformed constraints."""
    named = [each.node for each in shapes.shapes if isinstance(each.node, URIRef)]
    if named:
        _run(shapes, Graph(), focus_nodes=[URIRef("urn:triplewire:nobody")], use_shapes=named)


def _describe_result(report: Graph, result: Node) -> dict[str, str]:
    found = {name: report.value(result, predicate) for name, predicate in _RESULT_FIELDS.items()}
    return {name: str(value) for name, value in found.items() if value is not None}


def _graph(text: str) -> Graph:
    """Return the triples for rdflib. Skolem IRIs become blank nodes; triple terms are omitted, as it has none."""
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


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (SHAPES_MEMORY_BYTES, SHAPES_MEMORY_BYTES))
    connection, validator = socket.socket(fileno=int(sys.argv[1])), ShapeValidator()
    requests = connection.makefile("rb")
    connection.sendall(encode_frame(FrameKind.READY))
    while (frame := read_frame(requests)) is not None:
        connection.sendall(_answer(validator, orjson.loads(frame[1])))


def _answer(validator: ShapeValidator, request: dict[str, Any]) -> bytes:
    try:
        if request.get("shapes") is not None:
            validator.load(request["key"], request["shapes"])
        verdicts = [validator.validate(request["key"], text) for text in request["events"]]
        return encode_json_frame(FrameKind.END, {"verdicts": verdicts})
    except TriplewireError as error:
        return encode_error_frame(error)
    except (MemoryError, RecursionError) as error:
        return encode_error_frame(InputError(f"the validation takes too much: {type(error).__name__}"))


if __name__ == "__main__":
    main()
