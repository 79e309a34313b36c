"""The JSON documents of the API: requests and responses, each as a dataclass from which its schema is generated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Annotated, Any, ClassVar, Final, Literal

from triplewire.config.status import EdgeStatus
from triplewire.config.traffic import StreamTraffic
from triplewire.http.openapi import schemas
from triplewire.http.openapi.schemas import ABSENT, POSITION, Document, Keywords, RequestDocument, Schema, any_of, ref
from triplewire.matching.filters import FILTER_CONSTRAINTS, FILTERS
from triplewire.model import ErasureScope, Kind
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security.tokens import TOKEN_CHARACTERS, TOKEN_GRANTS
from triplewire.security.webhooks import WEBHOOK_ATTEMPTS_MOST, WEBHOOK_URL_CHARACTERS
from triplewire.sparql.syntax.windows import QUERY_WINDOW_DAYS
from triplewire.storage.registry.ports import PAGE_ENTRIES
from triplewire.storage.registry.streams import DESCRIPTION_CHARACTERS, DESCRIPTION_KEYWORDS
from triplewire.storage.registry.subscriptions import LEASE_SECONDS_LEAST, LEASE_SECONDS_MOST, SELECTOR_VALUES

RELAY_STREAMS: Final = 256
"""Tables in the file of a relay. Each has a connection of its own to the edge above."""

PARAMETER_TYPES = ("term", "iri", "literal", "string", "integer", "decimal", "double", "boolean", "dateTime", "date")
"""Types that a template may state for a parameter."""

DURATION_SCHEMA = any_of(
    {"type": "number", "minimum": 0, "maximum": QUERY_WINDOW_DAYS * 86_400},
    {"type": "string", "description": "A duration such as PT10M"},
)
SPAN_SCHEMA = Keywords(type="integer", minimum=1, maximum=2**53)
START_SCHEMA = Keywords(type="string", description="`earliest`, a position, or a time with its zone")

Position = Annotated[str, ref(POSITION)]
StreamName = Annotated[str, ref("StreamName")]
KindName = Annotated[str, ref("Kind")]
Time = Annotated[str, schemas.TIME]
WebhookStateName = Literal["on", "gone", "ended"]
Microseconds = Annotated[int, Keywords(description="Microseconds since the epoch")]
Path = Annotated[str, Keywords(format="uri-reference")]
Name = Annotated[str, Keywords(minLength=1, maxLength=HEADER_CHARACTERS)]
Names = Name | Annotated[Sequence[Name], schemas.array_bounds(1, SELECTOR_VALUES)] | None
StreamList = Annotated[Sequence[StreamName], schemas.array_bounds(1, SELECTOR_VALUES)]
Start = Annotated[str, START_SCHEMA]
Duration = Annotated[float | str, DURATION_SCHEMA]
WebhookUrl = Annotated[str, Keywords(format="uri", maxLength=WEBHOOK_URL_CHARACTERS)]
_PARAMETER = {
    "type": "object",
    "properties": {"type": schemas.enum_schema(PARAMETER_TYPES)},
    "additionalProperties": False,
}
Parameters = Annotated[dict[str, Any], Keywords(additionalProperties=_PARAMETER)]


class ConstraintDocument(RequestDocument):
    """A constraint on an attribute, by content or by meaning."""

    attribute: str
    op: str
    value: Any
    strict: bool = ABSENT


Constraints = Annotated[Sequence[ConstraintDocument], schemas.array_bounds(0, FILTER_CONSTRAINTS)]


class WebhookDocument(Document):
    """The target of notifications. A secret that the broker generated is returned once, by the creating request."""

    url: WebhookUrl
    secret: Annotated[str, Keywords(description="`whsec_` and 24 to 64 bytes in base64; generated if omitted")] = ABSENT
    attempts: Annotated[int, Keywords(minimum=1, maximum=WEBHOOK_ATTEMPTS_MOST)] = ABSENT
    state: WebhookStateName = ABSENT


class _SubscriptionMembers(Document):
    sparql: str = ABSENT
    filter: Constraints = ABSENT
    filters: Annotated[Sequence[Constraints], schemas.array_bounds(1, FILTERS)] = ABSENT
    prefixes: dict[str, str] = ABSENT
    template: str = ABSENT
    values: dict[str, Any] = ABSENT
    version: Position = ABSENT
    kind: KindName = ABSENT
    ttl: Annotated[float, Keywords(minimum=LEASE_SECONDS_LEAST, maximum=LEASE_SECONDS_MOST)] = ABSENT
    entailment: Literal["rdfs"] = ABSENT
    from_: Start = ABSENT
    webhook: WebhookDocument = ABSENT
    stream: StreamName | StreamList | None = ABSENT
    source: Names = ABSENT
    application: Names = ABSENT
    vocabulary: Names = ABSENT


class SubscriptionRequestDocument(_SubscriptionMembers, RequestDocument):
    """A subscription to create."""

    extra: ClassVar[Schema] = {**RequestDocument.extra, "minProperties": 1}


class SubscriptionDocument(_SubscriptionMembers):
    """A subscription, and where its notifications are delivered."""

    id: str
    kind: KindName = field()
    stream: StreamName | StreamList | None = field()
    created: Time
    since: Position
    notifications: Path
    sharing: int = ABSENT
    lane: dict[str, Any] = ABSENT
    expires: Time = ABSENT


class DryRunDocument(Document):
    """The recent events that a subscription would have matched."""

    shape: dict[str, Any]
    tier: str
    plan: dict[str, Any]
    matched: int
    of: int
    complete: bool
    examples: Sequence[Any]


class ExplanationDocument(Document):
    """The reason why a subscription matched an event, or did not."""

    subscription: str
    event: str
    position: Position
    held: bool
    matched: bool
    failed: dict[str, Any] | None
    steps: dict[str, Any]


class TemplateRequestDocument(RequestDocument):
    sparql: str
    parameters: Parameters | None = ABSENT


class TemplateDocument(Document):
    name: str
    version: Position
    sparql: str
    parameters: Parameters


class OntologyDocument(Document):
    name: str
    version: Position
    triples: int
    classes: int
    properties: int


class QueryRequestDocument(RequestDocument):
    """A continuous query to register."""

    query: Annotated[str, Keywords(minLength=1, description="SPARQL, or RSP-QL with its windows")]
    name: Name | None = ABSENT
    semantics: Literal["bag", "set"] | None = ABSENT
    streams: StreamName | StreamList | None = ABSENT
    within: Duration | None = ABSENT
    span: Annotated[int, SPAN_SCHEMA] | None = ABSENT
    from_: Start | None = ABSENT
    time: Literal["arrival", "event"] | None = ABSENT
    lateness: Duration | None = ABSENT
    late: Literal["drop", "revise"] | None = ABSENT
    into: StreamName | None = ABSENT


class ContinuousQueryDocument(Document):
    """A continuous query, and where its answers are delivered."""

    id: str
    query: str
    name: Name = ABSENT
    state: Literal["on", "suspended"]
    semantics: Literal["bag", "set"] = ABSENT
    time: Literal["arrival", "event"] = ABSENT
    lateness: Duration = ABSENT
    late: Literal["drop", "revise"] = ABSENT
    streams: StreamName | StreamList = ABSENT
    within: Duration = ABSENT
    span: Annotated[int, SPAN_SCHEMA] = ABSENT
    into: StreamName = ABSENT
    stream: Path = ABSENT
    created: Time
    since: Position
    from_: Start = ABSENT
    answers: Path
    figures: dict[str, Any] = ABSENT


class WebhookStatusDocument(Document):
    """A webhook or WebSub subscriber, and the position up to which it is delivered."""

    id: str
    dialect: Literal["webhook", "websub"]
    url: str
    state: WebhookStateName
    stream: str = ABSENT
    topic: str = ABSENT
    created: Time
    expires: Time = ABSENT
    position: Position
    failures: int
    parked: int
    reason: str = ABSENT


class DeadLetterDocument(Document):
    """A message that its target did not accept in any attempt."""

    id: str
    position: Position
    attempts: int
    status: int | None
    reason: str
    parked: Time


class PositionsDocument(RequestDocument):
    positions: Annotated[Sequence[Position], schemas.array_bounds(0, PAGE_ENTRIES)] = ABSENT


class HubRequestDocument(Document):
    mode: Literal["subscribe", "unsubscribe"] = field(metadata={"name": "hub.mode"})
    topic: Annotated[str, Keywords(format="uri")] = field(metadata={"name": "hub.topic"})
    callback: WebhookUrl = field(metadata={"name": "hub.callback"})
    lease: Annotated[str, Keywords(pattern="^[0-9]*$")] = field(default=ABSENT, metadata={"name": "hub.lease_seconds"})
    secret: str = field(default=ABSENT, metadata={"name": "hub.secret"})


TokenText = Annotated[str, Keywords(minLength=1, maxLength=TOKEN_CHARACTERS)]
GrantText = Annotated[
    str,
    Keywords(
        pattern=r"^(\*|admin|(publish|consume|subscribe|query)(:[A-Za-z0-9._~-]*\*?)?)$",
        examples=["publish:home", "consume:city-*", "query", "admin", "*"],
    ),
]


class TokenRequestDocument(RequestDocument):
    """A token to create: its purpose, its grants and roles, and its lifetime."""

    name: TokenText
    allow: Annotated[Sequence[GrantText], schemas.array_bounds(1, TOKEN_GRANTS // 2)]
    roles: Annotated[Sequence[TokenText], schemas.array_bounds(0, TOKEN_GRANTS // 2)] = ABSENT
    expires: Annotated[str, Keywords(pattern="^[1-9][0-9]{0,5}[smhdw]$", examples=["30d"])] = ABSENT


class TokenDocument(Document):
    """A token, without its secret."""

    id: str
    name: str
    allow: Sequence[str]
    roles: Sequence[str]
    state: Literal["good", "expired", "revoked"]
    created: Time
    expires: Time | None
    revoked: Time | None


class NewTokenDocument(TokenDocument):
    """A token that was just created, with its text."""

    token: str


class HealthDocument(Document):
    """The positions that log, matching and history have reached. Administrators also see counts and listeners."""

    status: Literal["ok", "lagging", "starting", "down"]
    edge: str
    load: float
    free: int
    repeaters: int
    pipeline: str
    head: Position
    matched: Position
    stored: Position | None
    lag: int
    lag_seconds: float
    listeners: dict[str, int] = ABSENT
    lanes: dict[str, dict[str, Any]] = ABSENT
    queries: dict[str, float] = ABSENT
    lake: dict[str, Any] = ABSENT
    restarts: int = ABSENT


class StreamsDocument(Document):
    streams: Sequence[dict[str, Any]]
    notifications: StreamTraffic = ABSENT


class StreamProfileDocument(Document):
    """A stream: its description, its counts, and where to read and subscribe to it."""

    stream: str
    title: str
    url: str
    about: str
    history: str
    listen: dict[str, Any]
    events: int = ABSENT
    bytes: int = ABSENT
    rate: float = ABSENT
    since: Time = ABSENT
    until: Time = ABSENT
    kept: str | None = ABSENT
    vocabularies: Sequence[str] = ABSENT
    sample: dict[str, Any] = ABSENT
    shapes: dict[str, Any] = ABSENT


DescriptionText = Annotated[str, Keywords(minLength=1, maxLength=DESCRIPTION_CHARACTERS)]
Iri = Annotated[str, Keywords(format="iri")]


class StreamDescriptionDocument(Document):
    """The description of a stream, written by its administrators."""

    title: DescriptionText = ABSENT
    description: DescriptionText = ABSENT
    licence: Iri = ABSENT
    keywords: Annotated[Sequence[DescriptionText], schemas.array_bounds(0, DESCRIPTION_KEYWORDS)] = ABSENT
    version_of: Iri = ABSENT


StreamAddresses = Annotated[
    dict[str, Annotated[str, Keywords(format="uri")]], Keywords(minProperties=1, maxProperties=RELAY_STREAMS)
]


class AnnouncementDocument(Document):
    """The addresses of streams at another edge that repeats them."""

    streams: StreamAddresses
    load: Annotated[float, Keywords(minimum=0, maximum=1)] = ABSENT
    free: int = ABSENT


class RepeaterDocument(Document):
    id: str
    streams: StreamAddresses
    load: float
    free: int
    at: Microseconds


class ErasureStepDocument(Document):
    step: str
    state: Literal["waiting", "done"]
    at: Time | None


class ErasureDocument(Document):
    """The progress of an erasure. The erased name is shown only as a digest."""

    id: str
    erases: ErasureScope
    sha256: Annotated[str, Keywords(pattern="^[0-9a-f]{64}$")]
    by: str | None
    requested: Time
    position: Position
    steps: Sequence[ErasureStepDocument]
    counts: dict[str, int]
    completed: Time | None


def _documents(base: type[Document] = Document) -> Iterator[type[Document]]:
    for each in base.__subclasses__():
        if each is not RequestDocument and not each.__name__.startswith("_"):
            yield each
        yield from _documents(each)


def _list(name: str, items: str) -> Schema:
    return schemas.object_schema({name: schemas.array_schema(ref(items))})


def _page(name: str, items: str) -> Schema:
    return schemas.object_schema({name: schemas.array_schema(ref(items)), "next": schemas.nullable(ref(POSITION))})


def _one_or_more(name: str, least: int = 0) -> Schema:
    return any_of(ref(name), schemas.array_schema(ref(name), least))


SCHEMAS: dict[str, Schema] = {
    **schemas.SHARED_SCHEMAS,
    **schemas.MESSAGE_SCHEMAS,
    **schemas.CLIENT_MESSAGE_SCHEMAS,
    **{schemas.document_name(each): schemas.document_schema(each) for each in _documents()},
    "SubscriptionPage": _page("subscriptions", "Subscription"),
    "Templates": _list("templates", "Template"),
    "Ontologies": _list("ontologies", "Ontology"),
    "QueryPage": _page("queries", "ContinuousQuery"),
    "WebhookPage": _page("hooks", "WebhookStatus"),
    "DeadLetterPage": _page("letters", "DeadLetter"),
    "Tokens": _list("tokens", "Token"),
    "Edges": _list("edges", "EdgeStatus"),
    "Repeaters": _list("repeaters", "Repeater"),
    "ErasurePage": _page("erasures", "Erasure"),
    "QueryForm": schemas.object_schema({"query": schemas.STRING}),
    "Replay": schemas.object_schema({"id": schemas.STRING, "replaying": schemas.COUNT}),
    "Kind": schemas.schema_of(Kind),
    "SubscriptionRequests": _one_or_more("SubscriptionRequest", 1),
    "Subscriptions": _one_or_more("Subscription"),
    "QueryRequests": _one_or_more("QueryRequest", 1),
    "ContinuousQueries": _one_or_more("ContinuousQuery"),
    "BulkResult": any_of(
        schemas.object_schema({"line": schemas.COUNT, "id": schemas.STRING, "position": ref(POSITION)}),
        schemas.object_schema({"line": schemas.COUNT, "error": ref(schemas.PROBLEM)}),
    ),
    "Index": {"type": "object", "additionalProperties": schemas.STRING, "required": ["name"]},
    "StreamTraffic": schemas.document_schema(StreamTraffic, complete=True),
    "EdgeStatus": schemas.document_schema(EdgeStatus, complete=True, but=("metrics",)),
}
"""All schemas by name."""
