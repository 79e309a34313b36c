"""The AsyncAPI 3.0 document: the channels over which clients are told, and tell, without an end."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from triplewire.contract.openapi import SECURITY_SCHEMES
from triplewire.contract.operations import HEADER, PATH, QUERY, Operation
from triplewire.contract.routes import Route
from triplewire.contract.schemas import SCHEMAS

_JSON = "application/json"
_SCHEMES = {
    name: {**scheme, "type": "httpApiKey"} if scheme["type"] == "apiKey" else scheme
    for name, scheme in SECURITY_SCHEMES.items()
}
"""AsyncAPI keeps `apiKey` for protocols that have users."""


def asyncapi(routes: Iterable[Route], version: str, host: str, *, secure: bool = False) -> dict[str, Any]:
    """The document. Every route that tells messages is a channel, over HTTP and over WebSockets alike."""
    channels = [route for route in routes if route.operation.tells]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Triplewire",
            "version": version,
            "description": "Streams and notifications: by server-sent events, lines of JSON and WebSockets. "
            "Server-sent events have the `type` of a message as their name, and the rest of it as data.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": _JSON,
        "servers": {
            "http": {"host": host, "protocol": "https" if secure else "http", "security": _security()},
            "websocket": {"host": host, "protocol": "wss" if secure else "ws", "security": _security()},
        },
        "channels": {route.operation.id: _channel(route) for route in channels},
        "operations": {name: told for route in channels for name, told in _operations(route.operation).items()},
        "components": {
            "schemas": SCHEMAS,
            "messages": {name: _message(name) for name in _names(channels)},
            "securitySchemes": _SCHEMES,
        },
    }


def _security() -> list[dict[str, str]]:
    return [{"$ref": f"#/components/securitySchemes/{name}"} for name in _SCHEMES]


def _names(channels: Iterable[Route]) -> list[str]:
    return sorted({name for each in channels for name in (*each.operation.tells, *each.operation.hears)})


def _message(name: str) -> dict[str, Any]:
    schema = SCHEMAS[name]
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
    told = {"name": name, "title": words, "contentType": _JSON, "payload": {"$ref": f"#/components/schemas/{name}"}}
    return {**told, **({"summary": schema["description"]} if "description" in schema else {})}


def _channel(route: Route) -> dict[str, Any]:
    operation = route.operation
    named = [each for each in operation.parameters if each.where == PATH]
    messages = {name: {"$ref": f"#/components/messages/{name}"} for name in (*operation.tells, *operation.hears)}
    told: dict[str, Any] = {"address": route.path, "title": operation.summary, "messages": messages}
    told |= {"description": operation.description} if operation.description else {}
    told |= {"parameters": {each.name: {"description": each.description} for each in named}} if named else {}
    socket = {"method": "GET", "query": _schema(operation, QUERY), "headers": _schema(operation, HEADER)}
    return {**told, "bindings": {"ws": {**socket, "bindingVersion": "0.1.0"}}}


def _schema(operation: Operation, where: str) -> dict[str, Any]:
    given = [each for each in operation.parameters if each.where == where]
    return {
        "type": "object",
        "properties": {each.name: {"description": each.description, **each.schema} for each in given},
    }


def _operations(operation: Operation) -> dict[str, Any]:
    """As the service sees it: it sends what it tells, and receives what clients say."""
    acts = {"send": operation.tells, "receive": operation.hears}
    return {
        f"{operation.id}.{action}": {
            "action": action,
            "channel": {"$ref": f"#/channels/{operation.id}"},
            "summary": operation.summary,
            "messages": [{"$ref": f"#/channels/{operation.id}/messages/{name}"} for name in names],
            "bindings": {"http": {"method": "GET", "bindingVersion": "0.3.0"}},
        }
        for action, names in acts.items()
        if names
    }
