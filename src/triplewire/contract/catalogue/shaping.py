"""Shaping: what the events of a stream are to conform to."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.forms import one_of
from triplewire.rdf import SYNTAXES

_ADMIN = (Verb.ADMIN,)
_READ = (Verb.PUBLISH, Verb.CONSUME)
_RDF = {each.media_type: None for each in SYNTAXES}
_MODE = Parameter("mode", "What becomes of events that do not conform", schema=one_of(("refuse", "mark")))

PUT_SHAPES = Operation(
    "putShapes",
    "Give a stream shapes",
    _ADMIN,
    description="SHACL Core, in place of what the stream had. What is published after the answer is judged by them: "
    "refused with the report, or marked by the header `Shapes`.",
    parameters=(with_.STREAM, _MODE),
    body=Content(_RDF, "The shapes"),
    answers={200: Content({"application/json": None}, "Their stream, mode, version and number of triples")},
    problems=(400, 413, 415, 422, 503, 507),
)
FIND_SHAPES = Operation(
    "findShapes",
    "Read the shapes of a stream",
    _READ,
    "stream",
    parameters=(with_.STREAM,),
    answers={200: Content(_RDF, "The shapes", headers=("ETag",))},
    problems=(400, 404, 406),
)
REMOVE_SHAPES = Operation(
    "removeShapes",
    "Take the shapes from a stream",
    _ADMIN,
    parameters=(with_.STREAM,),
    answers={204: Content(description="They are gone")},
    problems=(400, 404, 507),
)
