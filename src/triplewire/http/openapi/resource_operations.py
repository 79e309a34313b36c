"""Operations on registry resources (subscriptions, continuous queries, ontologies, templates, shapes, tokens, the
policy), SPARQL queries, and operation of the service.
"""

from __future__ import annotations

from typing import Final

from triplewire.http.openapi import operations as with_
from triplewire.http.openapi.documents import DURATION_SCHEMA, SPAN_SCHEMA, START_SCHEMA
from triplewire.http.openapi.operations import BodyContent, Operation, Parameter
from triplewire.http.openapi.schemas import enum_schema, ref
from triplewire.http.openapi.stream_operations import NOTICES, STREAM_ANSWERS
from triplewire.rdf import SYNTAXES
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security import Verb
from triplewire.storage.registry.subscriptions import SELECTOR_VALUES

DATASET_GRAPHS: Final = 256
"""Graphs in the parameters of one request; each is a comparison with every quad."""


JSON = "application/json"
NDJSON = "application/x-ndjson"
_SUBSCRIBE = (Verb.SUBSCRIBE,)
_ADMIN = (Verb.ADMIN,)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)
_GONE = {204: BodyContent(description="Removed")}

MAKE_SUBSCRIPTION = Operation(
    "makeSubscription",
    "Create subscriptions",
    _SUBSCRIBE,
    description="An object creates one, an array all or none, and each line one by itself. A subscription sees "
    "every event that is published after the response.",
    parameters=(
        Parameter("dry_run", "`1`: create none, but return what it would match", schema=enum_schema(("0", "1"))),
    ),
    body=BodyContent({JSON: "SubscriptionRequests", NDJSON: "SubscriptionRequest"}),
    answers={
        201: BodyContent({JSON: "Subscriptions"}, "Created", headers=("Location",)),
        200: BodyContent({JSON: "DryRun", NDJSON: "BulkResult"}, "The result of a dry run; or a line for each line"),
    },
    problems=(400, 404, 409, 413, 415, 422, 503, 507),
)
SUBSCRIPTIONS = Operation(
    "listSubscriptions",
    "List subscriptions",
    _SEE,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "SubscriptionPage"})},
    problems=(400,),
)
FIND_SUBSCRIPTION = Operation(
    "findSubscription",
    "Get a subscription",
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
    "Explain why a subscription matches an event, or not",
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
    "Receive the notifications of a subscription",
    _SUBSCRIBE,
    description="Without a start, all retained notifications since the subscription was created are sent.",
    parameters=(with_.ID, *with_.LISTENING),
    answers=STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    sends=("NotificationMessage", "EndMessage", *NOTICES),
    receives=("AcknowledgeMessage",),
)
TEMPLATES = Operation("listTemplates", "List templates", _SEE, answers={200: BodyContent({JSON: "Templates"})})
FIND_TEMPLATE = Operation(
    "findTemplate",
    "Get a template",
    _SEE,
    parameters=(with_.NAME,),
    answers={200: BodyContent({JSON: "Template"})},
    problems=(404,),
)
PUT_TEMPLATE = Operation(
    "putTemplate",
    "Create or replace a template",
    _ADMIN,
    description="Instances of the old version stay as they are.",
    parameters=(with_.NAME,),
    body=BodyContent({JSON: "TemplateRequest"}),
    answers={200: BodyContent({JSON: "Template"}, headers=("Location",))},
    problems=(400, 413, 415, 422, 507),
)
REMOVE_TEMPLATE = Operation(
    "removeTemplate", "Remove a template", _ADMIN, parameters=(with_.NAME,), answers=_GONE, problems=(404, 507)
)


SPARQL_TYPE = "application/sparql-query"
TEXT_TYPE = "text/plain"
_IF_TEXT = "; if the body is a query"

REGISTER_QUERY = Operation(
    "registerQuery",
    "Register continuous queries",
    _SUBSCRIBE,
    description="An object or a text registers one, an array all or none, and each line one by itself. A query "
    "counts all events that are published after the response.",
    parameters=(
        Parameter("name", f"Its name{_IF_TEXT}"),
        Parameter(
            "semantics",
            f"An answer for every combination of triples, or each once{_IF_TEXT}",
            schema=enum_schema(("bag", "set")),
        ),
        Parameter(
            "streams",
            f"Only events of these streams{_IF_TEXT}",
            schema=with_.repeated(ref("StreamName"), SELECTOR_VALUES),
        ),
        Parameter(
            "within", f"The time within which all pieces of an answer must arrive{_IF_TEXT}", schema=DURATION_SCHEMA
        ),
        Parameter("span", f"Likewise, the number of positions{_IF_TEXT}", schema=SPAN_SCHEMA),
        Parameter("from", f"The start of the backfill{_IF_TEXT}", schema=START_SCHEMA),
        Parameter("time", f"The time by which windows close{_IF_TEXT}", schema=enum_schema(("arrival", "event"))),
        Parameter("lateness", f"How late events may be{_IF_TEXT}", schema=DURATION_SCHEMA),
        Parameter("late", f"The treatment of events that are later{_IF_TEXT}", schema=enum_schema(("drop", "revise"))),
        Parameter("into", f"The stream to which answers are published{_IF_TEXT}", schema=ref("StreamName")),
    ),
    body=BodyContent({JSON: "QueryRequests", NDJSON: "QueryRequest", SPARQL_TYPE: None, TEXT_TYPE: None}),
    answers={
        201: BodyContent({JSON: "ContinuousQueries"}, "Registered", headers=("Location",)),
        200: BodyContent({NDJSON: "BulkResult"}, "A line for each line"),
    },
    problems=(400, 403, 413, 415, 422, 503, 507),
)
QUERIES = Operation(
    "listQueries",
    "List continuous queries",
    _SEE,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "QueryPage"})},
    problems=(400,),
)
FIND_QUERY = Operation(
    "findQuery",
    "Get a continuous query and its statistics",
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
    answers={204: BodyContent(description="Removed")},
    problems=(404, 507),
)

QUERY_ANSWERS = Operation(
    "answers",
    "Receive the answers of a continuous query",
    _SUBSCRIBE,
    description="Without a start, all retained answers since the query was registered are sent. Answers of "
    "windows and of CONSTRUCT are events, all others notifications.",
    parameters=(with_.QUERY_ID, *with_.LISTENING),
    answers=STREAM_ANSWERS,
    problems=(400, 403, 404, 406, 503),
    sends=("AnswerMessage", "EventMessage", "EndMessage", *NOTICES),
    receives=("AcknowledgeMessage",),
)


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
"""Media types of query results and explanations."""

_QUERY = (
    Parameter("default-graph-uri", "The default graph, in place of FROM", schema=_IRIS),
    Parameter("named-graph-uri", "The named graphs, in place of FROM NAMED", schema=_IRIS),
    with_.FORMAT,
    Parameter("timeout", "Seconds, at most those of the settings", schema={"type": "number"}),
    Parameter("engine", "The engine", schema=enum_schema(("auto", "duckdb", "spark"))),
    Parameter("entailment", "The entailment regime", schema=enum_schema(("none", "rdfs"))),
    Parameter("explain", "Return the plan instead of results", schema=enum_schema(("text", "json"))),
    Parameter("version", "A version of the lake", schema={"type": "integer", "minimum": 0}),
    Parameter(
        "as_of", "A time; the version that was the newest then", schema={"type": "string", "format": "date-time"}
    ),
)
_ANSWERED = {200: BodyContent(RESULT_TYPES, "The results, as they are found")}
_REFUSED = (400, 404, 406, 413, 422, 503)

SPARQL_GET = Operation(
    "query",
    "Query history by SPARQL",
    (Verb.QUERY,),
    description="SPARQL 1.1 Protocol. Without a query, the response is the service description.",
    parameters=(Parameter("query", "The query"), *_QUERY),
    answers=_ANSWERED,
    problems=_REFUSED,
)
SPARQL_POST = Operation(
    "queryByPost",
    "Query history by SPARQL, with the query in the body",
    (Verb.QUERY,),
    description="A form with the same parameters, or the query itself.",
    parameters=_QUERY,
    body=BodyContent({"application/sparql-query": None, "application/x-www-form-urlencoded": "QueryForm"}),
    answers=_ANSWERED,
    problems=(*_REFUSED, 415),
)
ONTOLOGIES = Operation(
    "listOntologies",
    "List ontologies",
    _READ_ONTOLOGIES,
    answers={200: BodyContent({"application/json": "Ontologies"})},
)
FIND_ONTOLOGY = Operation(
    "findOntology",
    "Get an ontology",
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
    answers={204: BodyContent(description="Removed")},
    problems=(404, 409, 507),
)


_ID = (
    with_.path_parameter(
        "id", "The id of the token, which is not secret", {"type": "string", "pattern": "^[a-z0-9]{10}$"}
    ),
)

CREATE_TOKEN = Operation(
    "createToken",
    "Create a token",
    _ADMIN,
    description="No other response ever has the text of the token. The first token turns authentication on.",
    body=BodyContent({JSON: "TokenRequest"}),
    answers={201: BodyContent({JSON: "NewToken"}, "Created", headers=("Location",))},
    problems=(400, 409, 413, 415, 422, 507),
)
TOKENS = Operation(
    "listTokens", "List tokens, without their secrets", _ADMIN, answers={200: BodyContent({JSON: "Tokens"})}
)
FIND_TOKEN = Operation(
    "findToken",
    "Get a token, without its secret",
    _ADMIN,
    parameters=_ID,
    answers={200: BodyContent({JSON: "Token"})},
    problems=(404,),
)
REVOKE_TOKEN = Operation(
    "revokeToken",
    "Revoke a token, and end its sessions",
    _ADMIN,
    parameters=_ID,
    answers={204: BodyContent(description="Revoked, at every edge")},
    problems=(404, 507),
)


TOML_TYPE = "application/toml"
_POLICY_TEXT = BodyContent({TOML_TYPE: None, "text/plain": None}, "The policy, as TOML.")
_POLICY_ANSWER = BodyContent({"application/json": None}, "The version and the number of rules.")
_VERSION = Parameter("version", "An earlier version; by default the one in force.")
_DRY_RUN = Parameter("dry_run", "`1` checks the policy, and does not load it.", schema={"enum": ["0", "1"]})

FIND_POLICY = Operation(
    "findPolicy",
    "Get the policy in force",
    _ADMIN,
    parameters=(_VERSION,),
    answers={200: BodyContent({TOML_TYPE: None})},
    problems=(400, 404),
)
LOAD_POLICY = Operation(
    "loadPolicy",
    "Load a policy",
    _ADMIN,
    description="It is checked first. Events from the version's position on are matched under it; everything "
    "that is read from then on is read under it.",
    parameters=(_DRY_RUN,),
    body=_POLICY_TEXT,
    answers={200: _POLICY_ANSWER},
    problems=(400, 413, 415),
)
REMOVE_POLICY = Operation("removePolicy", "Remove the policy", _ADMIN, answers={204: BodyContent({})}, problems=(404,))
POLICY_VERSIONS = Operation("listPolicyVersions", "List versions of the policy", _ADMIN, answers={200: _POLICY_ANSWER})


_READ_SHAPES = (Verb.PUBLISH, Verb.CONSUME)
_MODE = Parameter("mode", "The treatment of events that do not conform", schema=enum_schema(("refuse", "mark")))

PUT_SHAPES = Operation(
    "putShapes",
    "Set the shapes of a stream",
    _ADMIN,
    description="SHACL Core. Events that are published after the response are validated by them: refused with "
    "the report, or marked by the header `Shapes`.",
    parameters=(with_.STREAM, _MODE),
    body=BodyContent(_RDF, "The shapes"),
    answers={200: BodyContent({"application/json": None}, "Their stream, mode, version and number of triples")},
    problems=(400, 413, 415, 422, 503, 507),
)
FIND_SHAPES = Operation(
    "findShapes",
    "Get the shapes of a stream",
    _READ_SHAPES,
    "stream",
    parameters=(with_.STREAM,),
    answers={200: BodyContent(_RDF, "The shapes", headers=("ETag",))},
    problems=(400, 404, 406),
)
REMOVE_SHAPES = Operation(
    "removeShapes",
    "Remove the shapes of a stream",
    _ADMIN,
    parameters=(with_.STREAM,),
    answers={204: BodyContent(description="Removed")},
    problems=(400, 404, 507),
)


_RELAY = with_.path_parameter("id", "The id of the relay", {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"})
_TEXT = {"type": "string", "minLength": 1, "maxLength": HEADER_CHARACTERS}
_BY = Parameter("by", "Who requests it, for the receipt", schema=_TEXT)
_RECEIPT = {202: BodyContent({JSON: "Erasure"}, "Accepted; no client sees the events any more", headers=("Location",))}

INDEX = Operation("index", "List entry points", answers={200: BodyContent({JSON: "Index"})})
HEALTH = Operation(
    "health",
    "Check the health of the service",
    answers={
        200: BodyContent({JSON: "Health"}, "Events are matched, perhaps late"),
        503: BodyContent({JSON: "Health"}, "The pipeline is starting or down; publishing works"),
    },
)
METRICS = Operation(
    "metrics", "Get metrics", _ADMIN, answers={200: BodyContent({"text/plain": None}, "For Prometheus")}
)
EDGES = Operation(
    "listEdges", "List the edges over the same stores", _ADMIN, answers={200: BodyContent({JSON: "Edges"})}
)
REPEATERS = Operation(
    "listRepeaters",
    "List repeaters of streams",
    (Verb.CONSUME, Verb.ADMIN),
    answers={200: BodyContent({JSON: "Repeaters"})},
)
PUT_REPEATER = Operation(
    "putRepeater",
    "Announce a repeater",
    _ADMIN,
    description="An announcement must be repeated before it expires.",
    parameters=(_RELAY,),
    body=BodyContent({JSON: "Announcement"}),
    answers={204: BodyContent(description="Announced")},
    problems=(400, 422),
)
REMOVE_REPEATER = Operation(
    "removeRepeater", "Withdraw a repeater", _ADMIN, parameters=(_RELAY,), answers=_GONE, problems=(400,)
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
    "Erase all events of a source, or all about a subject",
    _ADMIN,
    description="Give either `source` or `subject`.",
    parameters=(
        Parameter("source", "The source whose events are erased", schema=_TEXT),
        Parameter(
            "subject", "The IRI that is erased with all triples about it", schema={"type": "string", "format": "iri"}
        ),
        _BY,
    ),
    answers=_RECEIPT,
    problems=(400, 507),
)
ERASURES = Operation(
    "listErasures",
    "List receipts of erasures",
    _ADMIN,
    parameters=(with_.PAGE_SIZE, with_.CURSOR),
    answers={200: BodyContent({JSON: "ErasurePage"})},
    problems=(400,),
)
FIND_ERASURE = Operation(
    "findErasure",
    "Get the receipt of an erasure",
    _ADMIN,
    parameters=(with_.path_parameter("id", "The id of the receipt"),),
    answers={200: BodyContent({JSON: "Erasure"})},
    problems=(404,),
)


_SAME = BodyContent(description="Not modified", headers=("ETag",))

OPENAPI = Operation(
    "openapi",
    "Get the OpenAPI document",
    answers={200: BodyContent({JSON: None}, "OpenAPI 3.1", headers=("ETag",)), 304: _SAME},
)
ASYNCAPI = Operation(
    "asyncapi",
    "Get the AsyncAPI document",
    answers={200: BodyContent({JSON: None}, "AsyncAPI 3.0", headers=("ETag",)), 304: _SAME},
)
DOCS = Operation(
    "docs",
    "Get the OpenAPI document as a page",
    answers={200: BodyContent({"text/html": None}, "A page", headers=("ETag",)), 304: _SAME},
)
