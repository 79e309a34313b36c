"""Discovering: what streams there are, and what is known of them."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.catalogue.reading import RDF
from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.schemas.forms import ref

JSON = "application/json"
_CACHED = ("ETag", "Cache-Control", "Link")
_SAME = {304: Content(description="It is as the client has it", headers=_CACHED)}

STREAMS = Operation(
    "listStreams",
    "See the streams",
    (Verb.CONSUME,),
    description="Those that the caller sees, some at a time: as JSON, with what flows out of them, or as DCAT.",
    parameters=(Parameter("cursor", "Those whose names come after this one", schema=ref("StreamName")),),
    answers={200: Content({JSON: "Streams", **RDF}, headers=_CACHED), **_SAME},
    problems=(406,),
)
ABOUT = Operation(
    "aboutStream",
    "See what is known of a stream",
    (Verb.CONSUME,),
    "stream",
    parameters=(with_.STREAM,),
    answers={200: Content({JSON: "Profile", **RDF}, headers=_CACHED), **_SAME},
    problems=(400, 404, 406),
)
PUT_ABOUT = Operation(
    "putAbout",
    "Say what a stream is about",
    (Verb.ADMIN,),
    parameters=(with_.STREAM,),
    body=Content({JSON: "About"}),
    answers={200: Content({JSON: "About"})},
    problems=(400, 422, 507),
)
VOID = Operation(
    "void",
    "See what all of it has in it",
    (Verb.QUERY, Verb.CONSUME),
    description="Counts are told to those who see everything.",
    answers={200: Content(RDF, headers=_CACHED), **_SAME},
    problems=(406,),
)
API_CATALOG = Operation(
    "apiCatalog",
    "See what is served",
    description="A set of links (RFC 9727).",
    answers={200: Content({"application/linkset+json": None}, headers=("Link",))},
)
