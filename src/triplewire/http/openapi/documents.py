"""The JSON documents of the API: requests and responses, each as a dataclass from which its schema is generated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Literal

from triplewire.config.metrics import StreamTraffic
from triplewire.config.status import EdgeStatus
from triplewire.http.openapi.schemas import (
    ABSENT,
    CLIENT_MESSAGE_SCHEMAS,
    COUNT,
    MESSAGE_SCHEMAS,
    POSITION,
    PROBLEM,
    PUBLISH_SCHEMAS,
    SHARED_SCHEMAS,
    STRING,
    TIME,
    Document,
    Keywords,
    RequestDocument,
    Schema,
    any_of,
    array_bounds,
    array_schema,
    document_name,
    document_schema,
    enum_schema,
    object_schema,
    ref,
    schema_of,
)
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
Time = Annotated[str, TIME]
WebhookStateName = Literal["on", "gone", "ended"]
Microseconds = Annotated[int, Keywords(description="Microseconds since the epoch")]
Path = Annotated[str, Keywords(format="uri-reference")]
Name = Annotated[str, Keywords(minLength=1, maxLength=HEADER_CHARACTERS)]
Names = Name | Annotated[Sequence[Name], array_bounds(1, SELECTOR_VALUES)] | None
StreamList = Annotated[Sequence[StreamName], array_bounds(1, SELECTOR_VALUES)]
Start = Annotated[str, START_SCHEMA]
Duration = Annotated[float | str, DURATION_SCHEMA]
WebhookUrl = Annotated[str, Keywords(format="uri", maxLength=WEBHOOK_URL_CHARACTERS)]
_PARAMETER = {"type": "object", "properties": {"type": enum_schema(PARAMETER_TYPES)}, "additionalProperties": False}
Parameters = Annotated[dict[str, Any], Keywords(additionalProperties=_PARAMETER)]


@dataclass(frozen=True, kw_only=True)
class ConstraintDocument(RequestDocument):
    """A constraint on an attribute, by content or by meaning."""

    attribute: str
    op: str
    value: Any
    strict: bool = ABSENT


Constraints = Annotated[Sequence[ConstraintDocument], array_bounds(0, FILTER_CONSTRAINTS)]


@dataclass(frozen=True, kw_only=True)
class WebhookDocument(Document):
    """The target of notifications. A secret that the broker generated is returned once, by the creating request."""

    url: WebhookUrl
    secret: Annotated[str, Keywords(description="`whsec_` and 24 to 64 bytes in base64; generated if omitted")] = ABSENT
    attempts: Annotated[int, Keywords(minimum=1, maximum=WEBHOOK_ATTEMPTS_MOST)] = ABSENT
    state: WebhookStateName = ABSENT


@dataclass(frozen=True, kw_only=True)
class _SubscriptionMembers:
    sparql: str = ABSENT
    filter: Constraints = ABSENT
    filters: Annotated[Sequence[Constraints], array_bounds(1, FILTERS)] = ABSENT
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


@dataclass(frozen=True, kw_only=True)
class SubscriptionRequestDocument(_SubscriptionMembers, RequestDocument):
    """A subscription to create."""

    extra: ClassVar[Schema] = {**RequestDocument.extra, "minProperties": 1}


@dataclass(frozen=True, kw_only=True)
class _Identified(Document):
    id: str


@dataclass(frozen=True, kw_only=True)
class SubscriptionDocument(_SubscriptionMembers, _Identified):
    """A subscription, and where its notifications are delivered."""

    kind: KindName = field()
    stream: StreamName | StreamList | None = field()
    created: Time
    since: Position
    notifications: Path
    sharing: int = ABSENT
    lane: dict[str, Any] = ABSENT
    expires: Time = ABSENT


@dataclass(frozen=True, kw_only=True)
class SubscriptionPageDocument(Document):
    subscriptions: Sequence[SubscriptionDocument]
    next: Position | None


@dataclass(frozen=True, kw_only=True)
class DryRunDocument(Document):
    """The recent events that a subscription would have matched."""

    shape: dict[str, Any]
    tier: str
    plan: dict[str, Any]
    matched: int
    of: int
    complete: bool
    examples: Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class ExplanationDocument(Document):
    """The reason why a subscription matched an event, or did not."""

    subscription: str
    event: str
    position: Position
    held: bool
    matched: bool
    failed: dict[str, Any] | None
    steps: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class QueryFormDocument(Document):
    query: str


@dataclass(frozen=True, kw_only=True)
class TemplateRequestDocument(RequestDocument):
    sparql: str
    parameters: Parameters | None = ABSENT


@dataclass(frozen=True, kw_only=True)
class TemplateDocument(Document):
    name: str
    version: Position
    sparql: str
    parameters: Parameters


@dataclass(frozen=True, kw_only=True)
class TemplatesDocument(Document):
    templates: Sequence[TemplateDocument]


@dataclass(frozen=True, kw_only=True)
class OntologyDocument(Document):
    name: str
    version: Position
    triples: int
    classes: int
    properties: int


@dataclass(frozen=True, kw_only=True)
class OntologiesDocument(Document):
    ontologies: Sequence[OntologyDocument]


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class QueryPageDocument(Document):
    queries: Sequence[ContinuousQueryDocument]
    next: Position | None


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class WebhookPageDocument(Document):
    hooks: Sequence[WebhookStatusDocument]
    next: Position | None


@dataclass(frozen=True, kw_only=True)
class DeadLetterDocument(Document):
    """A message that its target did not accept in any attempt."""

    id: str
    position: Position
    attempts: int
    status: int | None
    reason: str
    parked: Time


@dataclass(frozen=True, kw_only=True)
class DeadLetterPageDocument(Document):
    letters: Sequence[DeadLetterDocument]
    next: Position | None


@dataclass(frozen=True, kw_only=True)
class PositionsDocument(RequestDocument):
    positions: Annotated[Sequence[Position], array_bounds(0, PAGE_ENTRIES)] = ABSENT


@dataclass(frozen=True, kw_only=True)
class ReplayDocument(Document):
    id: str
    replaying: int


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class TokenRequestDocument(RequestDocument):
    """A token to create: its purpose, its grants and roles, and its lifetime."""

    name: TokenText
    allow: Annotated[Sequence[GrantText], array_bounds(1, TOKEN_GRANTS // 2)]
    roles: Annotated[Sequence[TokenText], array_bounds(0, TOKEN_GRANTS // 2)] = ABSENT
    expires: Annotated[str, Keywords(pattern="^[1-9][0-9]{0,5}[smhdw]$", examples=["30d"])] = ABSENT


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class NewTokenDocument(TokenDocument):
    """A token that was just created, with its text."""

    token: str


@dataclass(frozen=True, kw_only=True)
class TokensDocument(Document):
    tokens: Sequence[TokenDocument]


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class StreamsDocument(Document):
    streams: Sequence[dict[str, Any]]
    notifications: StreamTraffic = ABSENT


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class StreamDescriptionDocument(Document):
    """The description of a stream, written by its administrators."""

    title: DescriptionText = ABSENT
    description: DescriptionText = ABSENT
    licence: Iri = ABSENT
    keywords: Annotated[Sequence[DescriptionText], array_bounds(0, DESCRIPTION_KEYWORDS)] = ABSENT
    version_of: Iri = ABSENT


@dataclass(frozen=True, kw_only=True)
class EdgesDocument(Document):
    edges: Sequence[EdgeStatus]


StreamAddresses = Annotated[
    dict[str, Annotated[str, Keywords(format="uri")]], Keywords(minProperties=1, maxProperties=RELAY_STREAMS)
]


@dataclass(frozen=True, kw_only=True)
class AnnouncementDocument(Document):
    """The addresses of streams at another edge that repeats them."""

    streams: StreamAddresses
    load: Annotated[float, Keywords(minimum=0, maximum=1)] = ABSENT
    free: int = ABSENT


@dataclass(frozen=True, kw_only=True)
class RepeaterDocument(Document):
    id: str
    streams: StreamAddresses
    load: float
    free: int
    at: Microseconds


@dataclass(frozen=True, kw_only=True)
class RepeatersDocument(Document):
    repeaters: Sequence[RepeaterDocument]


@dataclass(frozen=True, kw_only=True)
class ErasureStepDocument(Document):
    step: str
    state: Literal["waiting", "done"]
    at: Time | None


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class ErasurePageDocument(Document):
    erasures: Sequence[ErasureDocument]
    next: Position | None


def _documents(base: type[Document] = Document) -> Iterator[type[Document]]:
    for each in base.__subclasses__():
        if each is not RequestDocument and each is not _Identified:
            yield each
        yield from _documents(each)


def _one_or_more(name: str, least: int = 0) -> Schema:
    return any_of(ref(name), array_schema(ref(name), least))


SCHEMAS: dict[str, Schema] = {
    **SHARED_SCHEMAS,
    **PUBLISH_SCHEMAS,
    **MESSAGE_SCHEMAS,
    **CLIENT_MESSAGE_SCHEMAS,
    **{document_name(each): document_schema(each) for each in _documents()},
    "Kind": schema_of(Kind),
    "SubscriptionRequests": _one_or_more("SubscriptionRequest", 1),
    "Subscriptions": _one_or_more("Subscription"),
    "QueryRequests": _one_or_more("QueryRequest", 1),
    "ContinuousQueries": _one_or_more("ContinuousQuery"),
    "BulkResult": any_of(
        object_schema({"line": COUNT, "id": STRING, "position": ref(POSITION)}),
        object_schema({"line": COUNT, "error": ref(PROBLEM)}),
    ),
    "Index": {"type": "object", "additionalProperties": STRING, "required": ["name"]},
    "StreamTraffic": document_schema(StreamTraffic, complete=True),
    "EdgeStatus": document_schema(EdgeStatus, complete=True, but=("metrics",)),
}
"""All schemas by name."""
