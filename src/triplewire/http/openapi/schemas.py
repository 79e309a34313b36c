"""JSON schemas (2020-12, the dialect of OpenAPI 3.1): builders, a generator from dataclasses, and shared schemas.

A `Document` is a JSON object of the API, written as a dataclass. Its schema is generated: the type of a field gives
the schema of the member, a field without a default is required, and the docstring is the description.

    class OntologyDocument(Document):
        name: str
        triples: int

is the schema `Ontology`. Integers are counts, from 0 on. `Annotated[str, Keywords(maxLength=64)]` adds to a schema;
`Annotated[str, ref("Position")]` refers to another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from inspect import cleandoc
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from triplewire.model.events import STREAM_NAME_CHARACTERS

Schema: TypeAlias = Mapping[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}

TEXTS: Schema = {"type": "array", "items": STRING}


class Keywords(dict[str, Any]):
    """Keywords of a schema beside a type: `Annotated[str, Keywords(maxLength=64)]`. Annotations must be hashable."""

    __hash__ = object.__hash__  # type: ignore[assignment]


TIME = Keywords(type="string", format="date-time")

ABSENT: Any = object()
"""The default of an optional member: it is left out of the JSON object."""


def present(value: object) -> Any:  # noqa: ANN401 - a value, or ABSENT
    """The value of an optional member, which is left out if it is None."""
    return ABSENT if value is None else value


_PRIMITIVES: dict[Any, Schema] = {
    str: STRING,
    bool: BOOLEAN,
    int: COUNT,
    float: NUMBER,
    NoneType: {"type": "null"},
    Any: {},
}


def ref(name: str) -> Keywords:
    """Refer to a schema by its name."""
    return Keywords({"$ref": f"#/components/schemas/{name}"})


def object_schema(
    properties: Mapping[str, Schema], *, optional: Mapping[str, Schema] | None = None, description: str = ""
) -> Schema:
    """An object that may have further members, so that clients ignore what they do not know."""
    schema: dict[str, Any] = {"type": "object", "properties": {**properties, **(optional or {})}}
    schema |= {"required": list(properties)} if properties else {}
    return schema | ({"description": description} if description else {})


def array_schema(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    return {"type": "array", "items": items, **array_bounds(least, most)}


def array_bounds(least: int = 0, most: int | None = None) -> Keywords:
    return Keywords({name: bound for name, bound in (("minItems", least), ("maxItems", most)) if bound})


def any_of(*choices: Schema) -> Keywords:
    return Keywords(anyOf=list(choices))


def nullable(schema: Schema) -> Schema:
    return any_of(schema, {"type": "null"})


def enum_schema(values: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Document:
    """A JSON object of the API: each subclass is a frozen dataclass. Optional members have the default `ABSENT`."""

    extra: ClassVar[Schema] = {}
    """Members that its schema has besides."""
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    @cache
    def names(cls) -> tuple[str, ...]:
        """The names of its members."""
        return tuple(map(_member_name, fields(cls)))

    def to_json(self) -> dict[str, Any]:
        """The members that are not absent."""
        members = ((_member_name(each), getattr(self, each.name)) for each in fields(self))
        return {name: _to_json(value) for name, value in members if value is not ABSENT}


class RequestDocument(Document):
    """A JSON object that clients send: another member is an error, so that a misspelt one does not go unnoticed."""

    extra: ClassVar[Schema] = {"additionalProperties": False}


def _member_name(member: Field[Any]) -> str:
    """The name of a field without a trailing underscore, unless its metadata has another."""
    return str(member.metadata.get("name", member.name.removesuffix("_")))


def _to_json(value: object) -> object:
    if isinstance(value, Document):
        return value.to_json()
    return [_to_json(each) for each in value] if isinstance(value, list | tuple) else value


def document_name(document: type) -> str:
    return document.__name__.removesuffix("Document")


def document_schema(document: type[Any], *, complete: bool = False, but: Sequence[str] = ()) -> Schema:
    """Generate the schema of a dataclass, without some fields; in a `complete` one every field is required."""
    hints = get_type_hints(document, include_extras=True)
    members = [each for each in fields(document) if each.name not in but]
    required = [_member_name(each) for each in members if complete or each.default is MISSING]
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {_member_name(each): schema_of(hints[each.name]) for each in members}
    schema |= {"required": required} if required else {}
    description = _docstring(document)
    schema |= {"description": description} if description else {}
    return schema | getattr(document, "extra", {})


def schema_of(annotation: Any) -> Schema:  # noqa: ANN401 - any type annotation
    """Generate the schema of a type; a dataclass is referred to by its name."""
    if annotation in _PRIMITIVES:
        return _PRIMITIVES[annotation]
    if isinstance(annotation, type) and is_dataclass(annotation):
        return ref(document_name(annotation))
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return enum_schema([each.value for each in annotation])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        (added,) = arguments[1:]
        return added if "$ref" in added or "anyOf" in added else {**schema_of(arguments[0]), **added}
    if origin is Literal:
        return enum_schema(arguments)
    if origin in (Union, UnionType):
        return any_of(*(schema_of(each) for each in arguments))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return OBJECT if arguments[1] is Any else {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array"} if arguments[0] is Any else {"type": "array", "items": schema_of(arguments[0])}
    raise TypeError(f"there is no JSON schema for {annotation}")


def _docstring(document: type) -> str:
    """The docstring on one line; dataclasses without one have their signature there."""
    text = document.__doc__ or ""
    return "" if text.startswith(f"{document.__name__}(") else " ".join(cleandoc(text).split())


POSITION = "Position"
RESUME_TOKEN = "ResumeToken"
PROBLEM = "Problem"
RESULTS = "Results"

SHARED_SCHEMAS: dict[str, Schema] = {
    POSITION: {
        "type": "string",
        "pattern": "^[0-9a-f]{16}$",
        "description": "The position of an event in the order of all events. Opaque; positions sort as events do.",
    },
    RESUME_TOKEN: {
        "type": "string",
        "pattern": "^[0-9a-f]{16}(~[0-9a-f]{16})?$",
        "description": "Where to resume: a position, and that of a subscription where a connection has several.",
    },
    "StreamName": {
        "type": "string",
        "pattern": "^[A-Za-z0-9][A-Za-z0-9._~-]*$",
        "maxLength": STREAM_NAME_CHARACTERS,
    },
    PROBLEM: object_schema(
        {"type": {"type": "string", "format": "uri"}, "title": STRING, "status": COUNT, "detail": STRING},
        optional={
            **dict.fromkeys(("line", "column", "refusals"), COUNT),
            **dict.fromkeys(("excerpt", "field", "construct"), STRING),
            **dict.fromkeys(("limit", "retry_after"), NUMBER),
            "known": TEXTS,
            "position": ref(POSITION),
            "refused": array_schema(ref("Refusal")),
        },
        description="A problem (RFC 9457): the error, its place in the input, and what would be right.",
    ),
    RESULTS: {
        "type": "object",
        "required": ["head"],
        "properties": {"head": {"type": "object"}, "results": {"type": "object"}, "boolean": {"type": "boolean"}},
        "description": "SPARQL 1.1 Query Results JSON.",
    },
    "Receipt": object_schema(
        {"events": COUNT, "first": ref(POSITION), "last": ref(POSITION), "position": ref(POSITION)},
        optional={
            "stream": ref("StreamName"),
            "refused": array_schema(ref("Refusal")),
            **dict.fromkeys(("repeated", "refusals"), COUNT),
        },
        description="The result of a publish request: everything that was accepted is durable.",
    ),
    "Refusal": object_schema(
        {"item": COUNT, "problem": ref(PROBLEM)},
        optional={"line": COUNT},
        description="An item of a body that was refused.",
    ),
    "Item": object_schema(
        {},
        optional={
            **dict.fromkeys(("event", "time", "format", "body"), STRING),
            **dict.fromkeys(("source", "application"), nullable(STRING)),
            "headers": OBJECT,
        },
        description="An event on a line: as subscribers receive it, or a JSON-LD document.",
    ),
    "Acknowledgement": {
        **any_of(
            object_schema({"begin": object_schema({"stream": ref("StreamName")})}),
            object_schema({"item": COUNT, "events": COUNT, "position": ref(POSITION)}, optional={"repeated": COUNT}),
            object_schema({"item": COUNT, "problem": ref(PROBLEM)}, optional={"line": COUNT}),
            object_schema(
                {"end": object_schema({"items": COUNT, "events": COUNT, "repeated": COUNT, "refused": COUNT})}
            ),
        ),
        "description": "The acknowledgement of one item of a streaming publish, sent once it is durable.",
    },
}


def _message(type: str, description: str, fields: dict[str, Schema], **optional: Schema) -> Schema:
    return object_schema({"type": {"const": type}, **fields}, optional=optional, description=description)


_EVENT: dict[str, Any] = {"position": ref(POSITION), "stream": ref("StreamName"), "event": STRING, "time": TIME}

MESSAGE_SCHEMAS: dict[str, Schema] = {
    "EventMessage": _message(
        "event",
        "An event of a stream. `body` is N-Quads.",
        {**_EVENT, "source": nullable(STRING), "application": nullable(STRING), "format": STRING, "body": STRING},
        id=ref(RESUME_TOKEN),
        headers=OBJECT,
    ),
    "NotificationMessage": _message(
        "notification",
        "A subscription matched an event.",
        {"subscription": STRING, "kind": ref("Kind"), **_EVENT},
        id=ref(RESUME_TOKEN),
        results=ref(RESULTS),
        format=STRING,
        body=STRING,
        graph=STRING,
        limit=OBJECT,
    ),
    "AnswerMessage": _message(
        "notification",
        "Solutions of a continuous query: all that one event has completed, or that there were before.",
        {"query": STRING, "kind": ref("Kind"), "position": ref(POSITION), "time": TIME},
        id=ref(RESUME_TOKEN),
        stream=ref("StreamName"),
        event=STRING,
        results=ref(RESULTS),
        limit=OBJECT,
    ),
    "PositionMessage": _message(
        "position",
        "The position from which messages follow; the first message, and sent where no other message carries it.",
        {"position": ref(RESUME_TOKEN)},
        missed=BOOLEAN,
        earliest=ref(POSITION),
        subscription=STRING,
        query=STRING,
        stream=STRING,
    ),
    "GapMessage": _message(
        "gap",
        "Events at some of these positions are no longer retained.",
        {"asked": ref(POSITION), "earliest": ref(POSITION)},
        first=ref(POSITION),
        last=ref(POSITION),
        detail=STRING,
    ),
    "SlowMessage": _message(
        "slow", "The last message: read too slowly.", {"position": ref(RESUME_TOKEN), "detail": STRING}, limit=NUMBER
    ),
    "UndecidedMessage": _message(
        "undecided",
        "Sent in place of an event on which a filter took too long.",
        {"position": ref(POSITION), "detail": STRING},
    ),
    "ClosingMessage": _message(
        "closing",
        "The last message: come back after so many milliseconds.",
        {"position": ref(RESUME_TOKEN), "retry": COUNT, "detail": STRING},
    ),
    "MoveMessage": _message(
        "move",
        "The last message: continue at the location.",
        {"position": ref(POSITION), "location": STRING, "retry": COUNT, "detail": STRING},
    ),
    "FailedMessage": _message(
        "failed", "The last message: a filter failed.", {"position": ref(POSITION), "detail": STRING}
    ),
    "EndMessage": _message(
        "end", "The subscription or query has ended.", {"detail": STRING}, subscription=STRING, query=STRING
    ),
    "LeftMessage": _message(
        "left", "The connection no longer includes it.", {}, subscription=STRING, query=STRING, stream=STRING
    ),
    "ProblemMessage": _message("problem", "A message of the client was refused.", {"problem": ref(PROBLEM)}),
}

_ADDED = {"subscribe": "subscription", "stream": "stream", "query": "continuous query"}

CLIENT_MESSAGE_SCHEMAS: dict[str, Schema] = {
    "AcknowledgeMessage": object_schema(
        {"ack": ref(RESUME_TOKEN)}, description="The client has processed this message and all before it."
    ),
    **{
        f"{verb.title()}Message": object_schema(
            {verb: STRING}, optional={"after": STRING}, description=f"Add a {noun} to this connection."
        )
        for verb, noun in _ADDED.items()
    },
    **{
        f"Un{verb}Message": object_schema({f"un{verb}": STRING}, description=f"Remove a {noun} from this connection.")
        for verb, noun in _ADDED.items()
    },
}
