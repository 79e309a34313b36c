"""Forms: the few shapes that schemas are put together from (JSON Schema 2020-12, the dialect of OpenAPI 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

STRING: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}
TIME: Schema = {"type": "string", "format": "date-time"}
MICROSECONDS: Schema = {"type": "integer", "minimum": 0, "description": "Microseconds since the epoch"}
TEXTS: Schema = {"type": "array", "items": STRING}


def ref(name: str) -> Schema:
    """One of the schemas that have names."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(
    properties: Mapping[str, Schema],
    *,
    optional: Mapping[str, Schema] | None = None,
    closed: bool = False,
    about: str = "",
) -> Schema:
    """An object. What is told may have more members some day, so that clients pass over what they do not know; what is
    sent may not, so that a misspelt one does not go unnoticed."""
    whole: dict[str, Any] = {"type": "object", "properties": {**properties, **(optional or {})}}
    whole |= {"required": list(properties)} if properties else {}
    whole |= {"additionalProperties": False} if closed else {}
    return whole | ({"description": about} if about else {})


def some(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """A list."""
    bounds = {name: bound for name, bound in (("minItems", least), ("maxItems", most)) if bound}
    return {"type": "array", "items": items, **bounds}


def either(*choices: Schema) -> Schema:
    return {"anyOf": list(choices)}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    return either(schema, {"type": "null"})


def one_of(values: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(values)}
