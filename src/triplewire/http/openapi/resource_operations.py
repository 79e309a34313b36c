"""Operations on registry resources (subscriptions, webhooks, continuous queries, ontologies, templates, shapes, tokens,
the policy), SPARQL queries, and operation of the service.
"""

from __future__ import annotations

from typing import Final

from triplewire.http.openapi import operations
from triplewire.http.openapi.documents import DURATION_SCHEMA, SPAN_SCHEMA, START_SCHEMA
from triplewire.http.openapi.operations import JSON, BodyContent, Operation, Parameter, json_body, ok, repeated
from triplewire.http.openapi.schemas import POSITION, enum_schema, ref
from triplewire.rdf import SYNTAXES
from triplewire.security import Verb
from triplewire.storage.registry.ports import PAGE_ENTRIES
from triplewire.storage.registry.subscriptions import SELECTOR_VALUES

DATASET_GRAPHS: Final = 256
"""Graphs in the parameters of one request; each is a comparison with every quad."""


NDJSON = "application/x-ndjson"
SPARQL_TYPE = "application/sparql-query"
TEXT_TYPE = "text/plain"
TOML_TYPE = "application/toml"

Verbs = tuple[Verb, ...]

_SUBSCRIBE = (Verb.SUBSCRIBE,)
_ADMIN = (Verb.ADMIN,)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)
_REMOVED = BodyContent(description="Removed")
_RDF = {each.media_type: None for each in SYNTAXES}
_IRI = {"type": "string", "format": "iri"}


def _page(route: str, id: str, summary: str, verbs: Verbs, schema: str) -> Operation:
    return Operation(
        route, id, summary, verbs, takes=(operations.PAGE_SIZE, operations.CURSOR), answers=ok(schema), problems=(400,)
    )


def _find(route: str, id: str, summary: str, verbs: Verbs, schema: str) -> Operation:
    return Operation(route, id, summary, verbs, answers=ok(schema), problems=(404,))


def _remove(
    route: str, id: str, summary: str, verbs: Verbs, answer: BodyContent = _REMOVED, also: tuple[int, ...] = ()
) -> Operation:
    return Operation(route, id, summary, verbs, answers={204: answer}, problems=(404, 507, *also))


MAKE_SUBSCRIPTION = Operation(
    "POST /subscriptions",
    "makeSubscription",
    "Create subscriptions",
    _SUBSCRIBE,
    description="An object creates one, an array all or none, and each line one by itself. A subscription sees "
    "every event that is published after the response.",
    takes=(Parameter("dry_run", "`1`: create none, but return what it would match", schema=operations.FLAG),),
    body=BodyContent({JSON: "SubscriptionRequests", NDJSON: "SubscriptionRequest"}),
    answers={
        201: json_body("Subscriptions", "Created", ("Location",)),
        200: BodyContent({JSON: "DryRun", NDJSON: "BulkResult"}, "The result of a dry run; or a line for each line"),
    },
    problems=(400, 404, 409, 413, 415, 422, 503, 507),
)
SUBSCRIPTIONS = _page("GET /subscriptions", "listSubscriptions", "List subscriptions", _SEE, "SubscriptionPage")
FIND_SUBSCRIPTION = _find("GET /subscriptions/{id}", "findSubscription", "Get a subscription", _SEE, "Subscription")
END_SUBSCRIPTION = _remove("DELETE /subscriptions/{id}", "endSubscription", "End a subscription", _SEE)
EXPLAIN_SUBSCRIPTION = Operation(
    "GET /subscriptions/{id}/explain",
    "explainSubscription",
    "Explain why a subscription matches an event, or not",
    _SEE,
    takes=(
        Parameter(
            "event", "The id of the event, or its position", schema={"type": "string", "minLength": 1}, required=True
        ),
    ),
    answers={200: BodyContent({JSON: "Explanation", TEXT_TYPE: None})},
    problems=(400, 404, 503),
)
TEMPLATES = Operation("GET /templates", "listTemplates", "List templates", _SEE, answers=ok("Templates"))
FIND_TEMPLATE = _find("GET /templates/{name}", "findTemplate", "Get a template", _SEE, "Template")
PUT_TEMPLATE = Operation(
    "PUT /templates/{name}",
    "putTemplate",
    "Create or replace a template",
    _ADMIN,
    description="Instances of the old version stay as they are.",
    body=json_body("TemplateRequest"),
    answers={200: json_body("Template", headers=("Location",))},
    problems=(400, 413, 415, 422, 507),
)
REMOVE_TEMPLATE = _remove("DELETE /templates/{name}", "removeTemplate", "Remove a template", _ADMIN)

HOOKS = _page("GET /hooks", "listHooks", "List webhooks and their progress", _ADMIN, "WebhookPage")
DEAD_LETTERS = Operation(
    "GET /subscriptions/{id}/dead-letters",
    "listDeadLetters",
    "List dead letters of a webhook",
    _SEE,
    takes=(operations.PAGE_SIZE, operations.CURSOR),
    answers=ok("DeadLetterPage"),
    problems=(400, 404),
)
REPLAY_DEAD_LETTERS = Operation(
    "POST /subscriptions/{id}/replay",
    "replayDeadLetters",
    "Deliver dead letters again",
    _SEE,
    description="All, or those in the body. Each is tried once; those that are not accepted stay.",
    body=json_body("Positions", "Their positions; by default all"),
    answers={202: json_body("Replay", "Accepted")},
    problems=(400, 404, 409, 413, 415, 422, 507),
)
DROP_DEAD_LETTERS = Operation(
    "DELETE /subscriptions/{id}/dead-letters",
    "dropDeadLetters",
    "Delete dead letters",
    _SEE,
    description="All, or those at the given positions.",
    takes=(
        Parameter(
            "position", "Positions of dead letters; by default all", schema=repeated(ref(POSITION), PAGE_ENTRIES)
        ),
    ),
    answers={204: BodyContent(description="Deleted")},
    problems=(400, 404, 507),
)


_QUERY_FIELDS = {
    "name": ("Its name", {"type": "string"}),
    "semantics": ("An answer for every combination of triples, or each once", enum_schema(("bag", "set"))),
    "streams": ("Only events of these streams", repeated(ref("StreamName"), SELECTOR_VALUES)),
    "within": ("The time within which all pieces of an answer must arrive", DURATION_SCHEMA),
    "span": ("Likewise, the number of positions", SPAN_SCHEMA),
    "from": ("The start of the backfill", START_SCHEMA),
    "time": ("The time by which windows close", enum_schema(("arrival", "event"))),
    "lateness": ("How late events may be", DURATION_SCHEMA),
    "late": ("The treatment of events that are later", enum_schema(("drop", "revise"))),
    "into": ("The stream to which answers are published", ref("StreamName")),
}

REGISTER_QUERY = Operation(
    "POST /queries",
    "registerQuery",
    "Register continuous queries",
    _SUBSCRIBE,
    description="An object or a text registers one, an array all or none, and each line one by itself. A query "
    "counts all events that are published after the response.",
    takes=tuple(
        Parameter(name, f"{text}; if the body is a query", schema=schema)
        for name, (text, schema) in _QUERY_FIELDS.items()
    ),
    body=BodyContent({JSON: "QueryRequests", NDJSON: "QueryRequest", SPARQL_TYPE: None, TEXT_TYPE: None}),
    answers={
        201: json_body("ContinuousQueries", "Registered", ("Location",)),
        200: BodyContent({NDJSON: "BulkResult"}, "A line for each line"),
    },
    problems=(400, 403, 413, 415, 422, 503, 507),
)
QUERIES = _page("GET /queries", "listQueries", "List continuous queries", _SEE, "QueryPage")
FIND_QUERY = _find(
    "GET /queries/{id}", "findQuery", "Get a continuous query and its statistics", _SEE, "ContinuousQuery"
)
END_QUERY = _remove("DELETE /queries/{id}", "endQuery", "End a continuous query", _SEE)


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

_GRAPHS = repeated(_IRI, DATASET_GRAPHS)
_QUERY = (
    Parameter("default-graph-uri", "The default graph, in place of FROM", schema=_GRAPHS),
    Parameter("named-graph-uri", "The named graphs, in place of FROM NAMED", schema=_GRAPHS),
    operations.FORMAT,
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
    "GET /sparql",
    "query",
    "Query history by SPARQL",
    (Verb.QUERY,),
    description="SPARQL 1.1 Protocol. Without a query, the response is the service description.",
    takes=(Parameter("query", "The query"), *_QUERY),
    answers=_ANSWERED,
    problems=_REFUSED,
    head=False,
)
SPARQL_POST = Operation(
    "POST /sparql",
    "queryByPost",
    "Query history by SPARQL, with the query in the body",
    (Verb.QUERY,),
    description="A form with the same parameters, or the query itself.",
    takes=_QUERY,
    body=BodyContent({SPARQL_TYPE: None, "application/x-www-form-urlencoded": "QueryForm"}),
    answers=_ANSWERED,
    problems=(*_REFUSED, 415),
)

_READ_ONTOLOGIES = (Verb.QUERY, Verb.SUBSCRIBE, Verb.ADMIN)

ONTOLOGIES = Operation(
    "GET /ontologies", "listOntologies", "List ontologies", _READ_ONTOLOGIES, answers=ok("Ontologies")
)
FIND_ONTOLOGY = Operation(
    "GET /ontologies/{name}",
    "findOntology",
    "Get an ontology",
    _READ_ONTOLOGIES,
    answers={200: BodyContent(_RDF, "Its triples", headers=("ETag",))},
    problems=(404, 406),
)
LOAD_ONTOLOGY = Operation(
    "PUT /ontologies/{name}",
    "loadOntology",
    "Load or replace an ontology",
    _ADMIN,
    body=BodyContent(_RDF, "Its triples"),
    answers={200: json_body("Ontology", headers=("Location",))},
    problems=(400, 409, 413, 415, 507),
)
REMOVE_ONTOLOGY = _remove("DELETE /ontologies/{name}", "removeOntology", "Remove an ontology", _ADMIN, also=(409,))


CREATE_TOKEN = Operation(
    "POST /tokens",
    "createToken",
    "Create a token",
    _ADMIN,
    description="No other response ever has the text of the token. The first token turns authentication on.",
    body=json_body("TokenRequest"),
    answers={201: json_body("NewToken", "Created", ("Location",))},
    problems=(400, 409, 413, 415, 422, 507),
)
TOKENS = Operation("GET /tokens", "listTokens", "List tokens, without their secrets", _ADMIN, answers=ok("Tokens"))
FIND_TOKEN = _find("GET /tokens/{id}", "findToken", "Get a token, without its secret", _ADMIN, "Token")
REVOKE_TOKEN = _remove(
    "DELETE /tokens/{id}",
    "revokeToken",
    "Revoke a token, and end its sessions",
    _ADMIN,
    BodyContent(description="Revoked, at every edge"),
)


_POLICY_ANSWER = BodyContent({JSON: None}, "The version and the number of rules.")

FIND_POLICY = Operation(
    "GET /policy",
    "findPolicy",
    "Get the policy in force",
    _ADMIN,
    takes=(Parameter("version", "An earlier version; by default the one in force."),),
    answers={200: BodyContent({TOML_TYPE: None})},
    problems=(400, 404),
)
LOAD_POLICY = Operation(
    "PUT /policy",
    "loadPolicy",
    "Load a policy",
    _ADMIN,
    description="It is checked first. Events from the version's position on are matched under it; everything "
    "that is read from then on is read under it.",
    takes=(Parameter("dry_run", "`1` checks the policy, and does not load it.", schema={"enum": ["0", "1"]}),),
    body=BodyContent({TOML_TYPE: None, TEXT_TYPE: None}, "The policy, as TOML."),
    answers={200: _POLICY_ANSWER},
    problems=(400, 413, 415),
)
REMOVE_POLICY = Operation(
    "DELETE /policy", "removePolicy", "Remove the policy", _ADMIN, answers={204: BodyContent({})}, problems=(404,)
)
POLICY_VERSIONS = Operation(
    "GET /policy/versions", "listPolicyVersions", "List versions of the policy", _ADMIN, answers={200: _POLICY_ANSWER}
)


PUT_SHAPES = Operation(
    "PUT /streams/{stream}/shapes",
    "putShapes",
    "Set the shapes of a stream",
    _ADMIN,
    description="SHACL Core. Events that are published after the response are validated by them: refused with "
    "the report, or marked by the header `Shapes`.",
    takes=(Parameter("mode", "The treatment of events that do not conform", schema=enum_schema(("refuse", "mark"))),),
    body=BodyContent(_RDF, "The shapes"),
    answers={200: BodyContent({JSON: None}, "Their stream, mode, version and number of triples")},
    problems=(400, 413, 415, 422, 503, 507),
)
FIND_SHAPES = Operation(
    "GET /streams/{stream}/shapes",
    "findShapes",
    "Get the shapes of a stream",
    (Verb.PUBLISH, Verb.CONSUME),
    answers={200: BodyContent(_RDF, "The shapes", headers=("ETag",))},
    problems=(400, 404, 406),
)
REMOVE_SHAPES = _remove(
    "DELETE /streams/{stream}/shapes", "removeShapes", "Remove the shapes of a stream", _ADMIN, also=(400,)
)


_BY = Parameter("by", "Who requests it, for the receipt", schema=operations.TEXT)
_RECEIPT = {202: json_body("Erasure", "Accepted; no client sees the events any more", ("Location",))}

INDEX = Operation("GET /", "index", "List entry points", answers=ok("Index"))
HEALTH = Operation(
    "GET /health",
    "health",
    "Check the health of the service",
    answers={
        200: json_body("Health", "Events are matched, perhaps late"),
        503: json_body("Health", "The pipeline is starting or down; publishing works"),
    },
)
METRICS = Operation(
    "GET /metrics", "metrics", "Get metrics", _ADMIN, answers={200: BodyContent({TEXT_TYPE: None}, "For Prometheus")}
)
EDGES = Operation("GET /edges", "listEdges", "List the edges over the same stores", _ADMIN, answers=ok("Edges"))
REPEATERS = Operation(
    "GET /repeaters",
    "listRepeaters",
    "List repeaters of streams",
    (Verb.CONSUME, Verb.ADMIN),
    answers=ok("Repeaters"),
)
PUT_REPEATER = Operation(
    "PUT /repeaters/{id}",
    "putRepeater",
    "Announce a repeater",
    _ADMIN,
    description="An announcement must be repeated before it expires.",
    body=json_body("Announcement"),
    answers={204: BodyContent(description="Announced")},
    problems=(400, 422),
)
REMOVE_REPEATER = Operation(
    "DELETE /repeaters/{id}",
    "removeRepeater",
    "Withdraw a repeater",
    _ADMIN,
    answers={204: _REMOVED},
    problems=(400,),
)
ERASE_EVENT = Operation(
    "DELETE /events/{id}", "eraseEvent", "Erase an event", _ADMIN, takes=(_BY,), answers=_RECEIPT, problems=(400, 507)
)
ERASE_MANY = Operation(
    "DELETE /events",
    "eraseEvents",
    "Erase all events of a source, or all about a subject",
    _ADMIN,
    description="Give either `source` or `subject`.",
    takes=(
        Parameter("source", "The source whose events are erased", schema=operations.TEXT),
        Parameter("subject", "The IRI that is erased with all triples about it", schema=_IRI),
        _BY,
    ),
    answers=_RECEIPT,
    problems=(400, 507),
)
ERASURES = _page("GET /erasures", "listErasures", "List receipts of erasures", _ADMIN, "ErasurePage")
FIND_ERASURE = _find("GET /erasures/{id}", "findErasure", "Get the receipt of an erasure", _ADMIN, "Erasure")


def _document(route: str, id: str, summary: str, type: str, description: str) -> Operation:
    answers = {
        200: BodyContent({type: None}, description, ("ETag",)),
        304: BodyContent(description="Not modified", headers=("ETag",)),
    }
    return Operation(route, id, summary, answers=answers)


OPENAPI = _document("GET /openapi.json", "openapi", "Get the OpenAPI document", JSON, "OpenAPI 3.1")
ASYNCAPI = _document("GET /asyncapi.json", "asyncapi", "Get the AsyncAPI document", JSON, "AsyncAPI 3.0")
DOCS = _document("GET /docs", "docs", "Get the OpenAPI document as a page", "text/html", "A page")
