"""Reading: the history of a stream as linked pages."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation

RDF: dict[str, str | None] = {
    "application/trig": None,
    "application/n-quads": None,
    "application/ld+json": None,
    "text/turtle": None,
    "application/n-triples": None,
    "application/rdf+xml": None,
}
"""In which documents come that describe something."""

_NUMBER = {"type": "integer", "minimum": 0}
_CACHED = ("ETag", "Cache-Control", "Link")
_ANSWERS = {
    200: Content(RDF, "A node, in the words of TREE and LDES", headers=_CACHED),
    304: Content(description="It is as the client has it", headers=_CACHED),
}

VIEW = Operation(
    "ldesView",
    "Begin to read the history of a stream",
    (Verb.CONSUME,),
    "stream",
    description="The first node of a Linked Data Event Stream: what the stream promises, and where its pages are.",
    parameters=(with_.STREAM,),
    answers=_ANSWERS,
    problems=(400, 404, 406),
)
NODE = Operation(
    "ldesNode",
    "Read a page of the history of a stream",
    (Verb.CONSUME,),
    "stream",
    description="Level 0 has the pages with events, those above it lead there. A full page never changes.",
    parameters=(
        with_.STREAM,
        with_.path("level", "How far above the pages", {**_NUMBER, "maximum": 99}),
        with_.path("number", "Which one, from 0 on", {**_NUMBER, "maximum": 10**15 - 1}),
    ),
    answers=_ANSWERS,
    problems=(400, 404, 406, 410),
)
