"""Operations on registry resources (subscriptions, continuous queries, ontologies, templates, shapes, tokens, the
policy), SPARQL queries, and operation of the service.
"""

from __future__ import annotations

from typing import Final

from triplewire.http.openapi import operations as with_
from triplewire.http.openapi.operations import BodyContent, Operation, Parameter
from triplewire.http.openapi.resource_schemas import DURATION_SCHEMA, SPAN_SCHEMA, START_SCHEMA
from triplewire.http.openapi.schemas import enum_schema, ref
from triplewire.http.openapi.stream_operations import NOTICES, STREAM_ANSWERS
from triplewire.rdf import SYNTAXES
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security import Verb
from triplewire.storage.registry.subscriptions import SELECTOR_VALUES

DATASET_GRAPHS: Final = 256
"""Graphs that the parameters of one request name; each is a comparison with every quad."""


JSON = "application/json"
NDJSON = "application/x-ndjson"
_SUBSCRIBE = (Verb.SUBSCRIBE,)
_ADMIN = (Verb.ADMIN,)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)
_GONE = {204: BodyContent(description="It is gone")}

MAKE_SUBSCRIPTION = Operation(
    "makeSubscription",
    "Make subscriptions",
    _SUBSCRIBE,
    description="One of an object, all or none of an array, and of lines each by itself. Each holds for every event "
    "that is published after the answer.",
    parameters=(Parameter("dry_run", "`1`: make none, but tell what it would match", schema=enum_schema(("0", "1"))),),
    body=BodyContent({JSON: "Wishes", NDJSON: "Wish"}),
    answers={
        201: BodyContent({JSON: "Subscriptions"}, "They are made", headers=("Location",)),
        200: BodyContent({JSON: "Rehearsal", NDJSON: "MadeLine"}, "A dry run; or a line for each line"),
    },
    problems=(400, 404, 409, 413, 415, 422, 503, 507),
)
SUBSCRIPTIONS = Operation(
    "listSubscriptions",
    "See subscriptions, a page at a time",
    _SEE,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "SubscriptionPage"})},
    problems=(400,),
)
FIND_SUBSCRIPTION = Operation(
    "findSubscription",
    "See a subscription",
    _SEE,
    parameters=(with_.ID,),
    answers={200: BodyContent({JSON: "Subscription"})},
    problems=(404,),
)
END_SUBSCRIPTION = Operation(
    "endSubscription", "End a subscription", _SEE, parameters=(with_.ID,), answers=_GONE, problems=(404, 507)
)
EXPLAIN_SUBSCRIPTION = Operation(
    "explainSubscription",
    "See why a subscription matches an event, or not",
    _SEE,
    parameters=(
        with_.ID,
        Parameter(
            "event", "The id of the event, or its position", schema={"type": "string", "minLength": 1}, required=True
        ),
    ),
    answers={200: BodyContent({JSON: "Explanation", "text/plain": None})},
    problems=(400, 404, 503),
)
NOTIFICATIONS = Operation(
    "deliver",
    "Listen to the notifications of a subscription",
    _SUBSCRIBE,
    description="Who does not say from where gets all that is kept since the subscription was made.",
    parameters=(with_.ID, *with_.LISTENING),
    answers=STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    tells=("NotificationMessage", "EndMessage", *NOTICES),
    hears=("Acknowledging",),
)
TEMPLATES = Operation("listTemplates", "See the templates", _SEE, answers={200: BodyContent({JSON: "Templates"})})
FIND_TEMPLATE = Operation(
    "findTemplate",
    "See a template",
    _SEE,
    parameters=(with_.NAME,),
    answers={200: BodyContent({JSON: "Template"})},
    problems=(404,),
)
PUT_TEMPLATE = Operation(
    "putTemplate",
    "Make or replace a template",
    _ADMIN,
    description="Instances that were made of it stay as they are.",
    parameters=(with_.NAME,),
    body=BodyContent({JSON: "TemplateText"}),
    answers={200: BodyContent({JSON: "Template"}, headers=("Location",))},
    problems=(400, 413, 415, 422, 507),
)
REMOVE_TEMPLATE = Operation(
    "removeTemplate", "Remove a template", _ADMIN, parameters=(with_.NAME,), answers=_GONE, problems=(404, 507)
)


# Continuing: standing questions across events.

SPARQL_TYPE = "application/sparql-query"
TEXT_TYPE = "text/plain"
_OF_A_TEXT = "; where the body is a query"

REGISTER_QUERY = Operation(
    "registerQuery",
    "Register continuous queries",
    _SUBSCRIBE,
    description="One of an object or of a text, all or none of an array, and of lines each by itself. Each counts all "
    "that is published after the answer.",
    parameters=(
        Parameter("name", f"As it is called{_OF_A_TEXT}"),
        Parameter(
            "semantics",
            f"An answer for every combination of triples, or each once{_OF_A_TEXT}",
            schema=enum_schema(("bag", "set")),
        ),
        Parameter(
            "streams",
            f"Only events of these{_OF_A_TEXT}",
            schema=with_.repeated(ref("StreamName"), SELECTOR_VALUES),
        ),
        Parameter(
            "within", f"The time within which all pieces of an answer must arrive{_OF_A_TEXT}", schema=DURATION_SCHEMA
        ),
        Parameter("span", f"Likewise, the number of positions{_OF_A_TEXT}", schema=SPAN_SCHEMA),
        Parameter("from", f"What of the past counts, too{_OF_A_TEXT}", schema=START_SCHEMA),
        Parameter("time", f"By which clock windows go{_OF_A_TEXT}", schema=enum_schema(("arrival", "event"))),
        Parameter("lateness", f"By how much events may be late{_OF_A_TEXT}", schema=DURATION_SCHEMA),
        Parameter(
            "late", f"What becomes of an event that is later{_OF_A_TEXT}", schema=enum_schema(("drop", "revise"))
        ),
        Parameter("into", f"The stream to which answers are published{_OF_A_TEXT}", schema=ref("StreamName")),
    ),
    body=BodyContent({JSON: "Inquiries", NDJSON: "Inquiry", SPARQL_TYPE: None, TEXT_TYPE: None}),
    answers={
        201: BodyContent({JSON: "ContinuousQueries"}, "They are registered", headers=("Location",)),
        200: BodyContent({NDJSON: "MadeLine"}, "A line for each line"),
    },
    problems=(400, 403, 413, 415, 422, 503, 507),
)
QUERIES = Operation(
    "listQueries",
    "See continuous queries, a page at a time",
    _SEE,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "QueryPage"})},
    problems=(400,),
)
FIND_QUERY = Operation(
    "findQuery",
    "See a continuous query, and how it is doing",
    _SEE,
    parameters=(with_.QUERY_ID,),
    answers={200: BodyContent({JSON: "ContinuousQuery"})},
    problems=(404,),
)
END_QUERY = Operation(
    "endQuery",
    "End a continuous query",
    _SEE,
    parameters=(with_.QUERY_ID,),
    answers={204: BodyContent(description="It is gone")},
    problems=(404, 507),
)

QUERY_ANSWERS = Operation(
    "answers",
    "Listen to the answers of a continuous query",
    _SUBSCRIBE,
    description="Who does not say from where gets all that is kept since the query was registered. Those of windows "
    "and of CONSTRUCT are events, all others notifications.",
    parameters=(with_.QUERY_ID, *with_.LISTENING),
    answers=STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    tells=("AnswerMessage", "EventMessage", "EndMessage", *NOTICES),
    hears=("Acknowledging",),
)


# Querying: SPARQL over history, and the ontologies that give its words a meaning.

_READ_ONTOLOGIES = (Verb.QUERY, Verb.SUBSCRIBE, Verb.ADMIN)
_RDF = {each.media_type: None for each in SYNTAXES}
_IRIS = with_.repeated({"type": "string", "format": "iri"}, DATASET_GRAPHS)

RESULT_TYPES: dict[str, str | None] = {
    "application/sparql-results+json": "Results",
    "application/sparql-results+xml": None,
    "text/csv": None,
    "text/tab-separated-values": None,
    "text/turtle": None,
    "application/n-triples": None,
    "application/ld+json": None,
    "application/rdf+xml": None,
    "text/plain": None,
    "application/json": None,
}
"""The formats of answers, and of explanations."""

_QUERY = (
    Parameter("default-graph-uri", "The default graph, in place of FROM", schema=_IRIS),
    Parameter("named-graph-uri", "The named graphs, in place of FROM NAMED", schema=_IRIS),
    with_.FORMAT,
    Parameter("timeout", "Seconds, at most those of the settings", schema={"type": "number"}),
    Parameter("engine", "What answers it", schema=enum_schema(("auto", "duckdb", "spark"))),
    Parameter("entailment", "What follows from the ontologies counts, too", schema=enum_schema(("none", "rdfs"))),
    Parameter("explain", "Not the answer, but how it is found", schema=enum_schema(("text", "json"))),
    Parameter("version", "The number of a version of the lake", schema={"type": "integer", "minimum": 0}),
    Parameter(
        "as_of", "The version that was the newest at this time", schema={"type": "string", "format": "date-time"}
    ),
)
_ANSWERED = {200: BodyContent(RESULT_TYPES, "The answer, as it is found")}
_REFUSED = (400, 404, 406, 413, 422, 503)

SPARQL_GET = Operation(
    "query",
    "Ask SPARQL of history",
    (Verb.QUERY,),
    description="SPARQL 1.1 Protocol. Without a query it is answered with the service description.",
    parameters=(Parameter("query", "The query"), *_QUERY),
    answers=_ANSWERED,
    problems=_REFUSED,
)
SPARQL_POST = Operation(
    "queryByPost",
    "Ask SPARQL of history, with the query in the body",
    (Verb.QUERY,),
    description="A form with the same parameters, or the query itself.",
    parameters=_QUERY,
    body=BodyContent({"application/sparql-query": None, "application/x-www-form-urlencoded": "QueryForm"}),
    answers=_ANSWERED,
    problems=(*_REFUSED, 415),
)
ONTOLOGIES = Operation(
    "listOntologies",
    "See the ontologies",
    _READ_ONTOLOGIES,
    answers={200: BodyContent({"application/json": "Ontologies"})},
)
FIND_ONTOLOGY = Operation(
    "findOntology",
    "Read an ontology",
    _READ_ONTOLOGIES,
    parameters=(with_.NAME,),
    answers={200: BodyContent(_RDF, "Its triples", headers=("ETag",))},
    problems=(404, 406),
)
LOAD_ONTOLOGY = Operation(
    "loadOntology",
    "Load or replace an ontology",
    _ADMIN,
    parameters=(with_.NAME,),
    body=BodyContent(_RDF, "Its triples"),
    answers={200: BodyContent({"application/json": "Ontology"}, headers=("Location",))},
    problems=(400, 409, 413, 415, 507),
)
REMOVE_ONTOLOGY = Operation(
    "removeOntology",
    "Remove an ontology",
    _ADMIN,
    parameters=(with_.NAME,),
    answers={204: BodyContent(description="It is gone")},
    problems=(404, 409, 507),
)


# Admitting: the tokens by which people are known.

_ID = (
    with_.path_parameter(
        "id", "The id of the token, which is no secret", {"type": "string", "pattern": "^[a-z0-9]{10}$"}
    ),
)

CREATE_TOKEN = Operation(
    "createToken",
    "Make a token",
    _ADMIN,
    description="No other answer ever has the token itself. The first one that is made closes the door.",
    body=BodyContent({JSON: "TokenOrder"}),
    answers={201: BodyContent({JSON: "NewToken"}, "It is good from now on", headers=("Location",))},
    problems=(400, 409, 413, 415, 422, 507),
)
TOKENS = Operation(
    "listTokens", "See the tokens, without their secrets", _ADMIN, answers={200: BodyContent({JSON: "Tokens"})}
)
FIND_TOKEN = Operation(
    "findToken",
    "See a token, without its secret",
    _ADMIN,
    parameters=_ID,
    answers={200: BodyContent({JSON: "Token"})},
    problems=(404,),
)
REVOKE_TOKEN = Operation(
    "revokeToken",
    "Revoke a token, and send away who came in by it",
    _ADMIN,
    parameters=_ID,
    answers={204: BodyContent(description="It is good for nothing, at every edge")},
    problems=(404, 507),
)


# Governing: the policy on who sees what, and who may publish what.

TOML_TYPE = "application/toml"
_POLICY_TEXT = BodyContent({TOML_TYPE: None, "text/plain": None}, "The policy, as TOML.")
_POLICY_ANSWER = BodyContent({"application/json": None}, "Its version, and how many rules it has.")
_VERSION = Parameter("version", "A version that was in force once; without it, the one that is.")
_DRY_RUN = Parameter("dry_run", "1 checks the policy and leaves what is in force.", schema={"enum": ["0", "1"]})

FIND_POLICY = Operation(
    "findPolicy",
    "Read the policy in force",
    _ADMIN,
    parameters=(_VERSION,),
    answers={200: BodyContent({TOML_TYPE: None})},
    problems=(400, 404),
)
LOAD_POLICY = Operation(
    "loadPolicy",
    "Load a policy in place of what is in force",
    _ADMIN,
    description="It is checked first. Events from the version's position on are matched under it; whatever is read "
    "from then on is read under it.",
    parameters=(_DRY_RUN,),
    body=_POLICY_TEXT,
    answers={200: _POLICY_ANSWER},
    problems=(400, 413, 415),
)
REMOVE_POLICY = Operation(
    "removePolicy", "Have no policy from now on", _ADMIN, answers={204: BodyContent({})}, problems=(404,)
)
POLICY_VERSIONS = Operation(
    "listPolicyVersions", "See all versions of the policy", _ADMIN, answers={200: _POLICY_ANSWER}
)


# Shaping: what the events of a stream are to conform to.

_READ_SHAPES = (Verb.PUBLISH, Verb.CONSUME)
_MODE = Parameter("mode", "What becomes of events that do not conform", schema=enum_schema(("refuse", "mark")))

PUT_SHAPES = Operation(
    "putShapes",
    "Give a stream shapes",
    _ADMIN,
    description="SHACL Core, in place of what the stream had. What is published after the answer is judged by them: "
    "refused with the report, or marked by the header `Shapes`.",
    parameters=(with_.STREAM, _MODE),
    body=BodyContent(_RDF, "The shapes"),
    answers={200: BodyContent({"application/json": None}, "Their stream, mode, version and number of triples")},
    problems=(400, 413, 415, 422, 503, 507),
)
FIND_SHAPES = Operation(
    "findShapes",
    "Read the shapes of a stream",
    _READ_SHAPES,
    "stream",
    parameters=(with_.STREAM,),
    answers={200: BodyContent(_RDF, "The shapes", headers=("ETag",))},
    problems=(400, 404, 406),
)
REMOVE_SHAPES = Operation(
    "removeShapes",
    "Take the shapes from a stream",
    _ADMIN,
    parameters=(with_.STREAM,),
    answers={204: BodyContent(description="They are gone")},
    problems=(400, 404, 507),
)


# Running: how the service is doing, who repeats it, and what is erased from it.

_RELAY = with_.path_parameter("id", "The id of the relay", {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"})
_TEXT = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_BY = Parameter("by", "Who asks for it, as the receipt will say", schema=_TEXT)
_RECEIPT = {202: BodyContent({JSON: "Erasure"}, "It will be done; nobody is shown it any more", headers=("Location",))}

INDEX = Operation("index", "See where to go", answers={200: BodyContent({JSON: "Index"})})
HEALTH = Operation(
    "health",
    "See whether the service is well",
    answers={
        200: BodyContent({JSON: "Health"}, "What is published gets matched, be it late"),
        503: BodyContent({JSON: "Health"}, "The pipeline starts, or is down; publishing works"),
    },
)
METRICS = Operation(
    "metrics", "Read the metrics", _ADMIN, answers={200: BodyContent({"text/plain": None}, "For Prometheus")}
)
EDGES = Operation(
    "listEdges", "See the edges over the same stores", _ADMIN, answers={200: BodyContent({JSON: "Edges"})}
)
REPEATERS = Operation(
    "listRepeaters",
    "See who repeats the streams",
    (Verb.CONSUME, Verb.ADMIN),
    answers={200: BodyContent({JSON: "Repeaters"})},
)
PUT_REPEATER = Operation(
    "putRepeater",
    "Announce a repeater",
    _ADMIN,
    description="To be said again before it is forgotten.",
    parameters=(_RELAY,),
    body=BodyContent({JSON: "Announcement"}),
    answers={204: BodyContent(description="It is known")},
    problems=(400, 422),
)
REMOVE_REPEATER = Operation(
    "removeRepeater", "Take a repeater back", _ADMIN, parameters=(_RELAY,), answers=_GONE, problems=(400,)
)
ERASE_EVENT = Operation(
    "eraseEvent",
    "Erase an event",
    _ADMIN,
    parameters=(
        with_.path_parameter("id", "The id of the event, percent-encoded", {"type": "string", "format": "iri"}),
        _BY,
    ),
    answers=_RECEIPT,
    problems=(400, 507),
)
ERASE_MANY = Operation(
    "eraseEvents",
    "Erase all of a source, or all about a subject",
    _ADMIN,
    description="One of `source` and `subject` is to be given.",
    parameters=(
        Parameter("source", "The source whose events go", schema=_TEXT),
        Parameter("subject", "The IRI about which nothing is to stay", schema={"type": "string", "format": "iri"}),
        _BY,
    ),
    answers=_RECEIPT,
    problems=(400, 507),
)
ERASURES = Operation(
    "listErasures",
    "See the receipts of erasures, a page at a time",
    _ADMIN,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "ErasurePage"})},
    problems=(400,),
)
FIND_ERASURE = Operation(
    "findErasure",
    "See the receipt of an erasure",
    _ADMIN,
    parameters=(with_.path_parameter("id", "The id of the receipt"),),
    answers={200: BodyContent({JSON: "Erasure"})},
    problems=(404,),
)


# Describing: what is served, for machines and for people.

_SAME = BodyContent(description="It is still the one that the client has", headers=("ETag",))

OPENAPI = Operation(
    "openapi",
    "Read this description of every route",
    answers={200: BodyContent({JSON: None}, "OpenAPI 3.1", headers=("ETag",)), 304: _SAME},
)
ASYNCAPI = Operation(
    "asyncapi",
    "Read the description of every channel",
    answers={200: BodyContent({JSON: None}, "AsyncAPI 3.0", headers=("ETag",)), 304: _SAME},
)
DOCS = Operation(
    "docs",
    "Read the description of every route in a browser",
    answers={200: BodyContent({"text/html": None}, "A page", headers=("ETag",)), 304: _SAME},
)
