"""The OpenAPI 3.1 and AsyncAPI 3.0 documents, and an HTML page of the first, generated from operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from http import HTTPStatus
from typing import Any

from triplewire.http.openapi.documents import SCHEMAS
from triplewire.http.openapi.operations import HEADER, JSON, PATH, QUERY, BodyContent, Operation, Parameter
from triplewire.http.openapi.schemas import PROBLEM, ref

PROBLEM_TYPE = "application/problem+json"

AUTH_STATUSES = (401, 403, 429)
"""Problems of authentication, authorization and rate limits."""
COMMON_STATUSES = (400, 413, 503)
"""Problems of any request: malformed HTTP, too large, or an edge that is closing."""

_INFO = {
    "title": "Triplewire",
    "summary": "Publish RDF events over HTTP, subscribe in SPARQL, query everything ever published.",
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
SECURITY_SCHEMES: Mapping[str, Any] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of `triplewire token create`.",
    },
    "jwt": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of a trusted issuer."},
    "parameter": {
        "type": "apiKey",
        "in": "query",
        "name": "access_token",
        "description": "Either of them, for browsers: EventSource and WebSocket cannot set headers.",
    },
}
_HEADERS: Mapping[str, Any] = {
    "Position": {"description": "Where to resume", "schema": ref("ResumeToken")},
    "ETag": {"description": "Equal for equal documents", "schema": {"type": "string"}},
    "Cache-Control": {"description": "How long, and by which caches, it may be stored", "schema": {"type": "string"}},
    "Link": {"description": "The next page (`rel=next`), or related resources", "schema": {"type": "string"}},
    "Location": {"description": "The URL of the resource", "schema": {"type": "string", "format": "uri-reference"}},
    "Retry-After": {"description": "Seconds after which to try again", "schema": {"type": "string"}},
}


def openapi(operations: Iterable[Operation], version: str, server: str = "/") -> dict[str, Any]:
    """The document. It is equal for equal operations."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {**_INFO, "version": version},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {"schemas": SCHEMAS, "headers": _HEADERS, "securitySchemes": SECURITY_SCHEMES},
    }


def _operation(operation: Operation) -> dict[str, Any]:
    described: dict[str, Any] = {"operationId": operation.id, "summary": operation.summary}
    described |= {"description": operation.description} if operation.description else {}
    described |= {"parameters": [_parameter(each) for each in operation.parameters]} if operation.parameters else {}
    if operation.body is not None:
        described["requestBody"] = {"required": True, **_content(operation.body)}
    described["responses"] = _responses(operation)
    if operation.verbs:
        shown = (
            ("token", "jwt", "parameter") if operation.is_channel and operation.method == "GET" else ("token", "jwt")
        )
        described["security"] = [{name: []} for name in shown]
        described["x-verbs"] = [str(each) for each in operation.verbs]
    return described


def _parameter(parameter: Parameter) -> dict[str, Any]:
    described = {"name": parameter.name, "in": parameter.where, "description": parameter.description}
    return {**described, "schema": parameter.schema, **({"required": True} if parameter.required else {})}


def _content(content: BodyContent) -> dict[str, Any]:
    types = {type: {"schema": ref(name)} if name else {} for type, name in content.types.items()}
    return {**({"description": content.description} if content.description else {}), "content": types}


def _responses(operation: Operation) -> dict[str, Any]:
    answers = {status: _response(status, each) for status, each in operation.answers.items()}
    kinds = {*operation.problems, *COMMON_STATUSES, *AUTH_STATUSES}
    problems = {status: _problem(status) for status in kinds if status not in operation.answers}
    return {str(status): described for status, described in sorted({**answers, **problems}.items())}


def _response(status: int, content: BodyContent) -> dict[str, Any]:
    described: dict[str, Any] = {"description": content.description or HTTPStatus(status).phrase}
    if content.headers:
        described["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in content.headers}
    return described | ({"content": _content(content)["content"]} if content.types else {})


def _problem(status: int) -> dict[str, Any]:
    described = {"description": HTTPStatus(status).phrase, "content": {PROBLEM_TYPE: {"schema": ref(PROBLEM)}}}
    retried = {"headers": {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}} if status in (429, 503) else {}
    return {**described, **retried}


_SCHEMES = {
    name: {**scheme, "type": "httpApiKey"} if scheme["type"] == "apiKey" else scheme
    for name, scheme in SECURITY_SCHEMES.items()
}
"""AsyncAPI reserves `apiKey` for protocols with users."""


def asyncapi(operations: Iterable[Operation], version: str, host: str, *, secure: bool = False) -> dict[str, Any]:
    """The document. Every operation that sends messages is a channel, over HTTP and WebSockets alike."""
    channels = [each for each in operations if each.sends]
    names = sorted({name for each in channels for name in (*each.sends, *each.receives)})
    security = [{"$ref": f"#/components/securitySchemes/{name}"} for name in _SCHEMES]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Triplewire",
            "version": version,
            "description": "Streams and notifications: by server-sent events, lines of JSON and WebSockets. "
            "Server-sent events have the `type` of a message as their name, and the rest of it as data.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": JSON,
        "servers": {
            "http": {"host": host, "protocol": "https" if secure else "http", "security": security},
            "websocket": {"host": host, "protocol": "wss" if secure else "ws", "security": security},
        },
        "channels": {each.id: _channel(each) for each in channels},
        "operations": {name: described for each in channels for name, described in _channel_operations(each).items()},
        "components": {
            "schemas": SCHEMAS,
            "messages": {name: _message(name) for name in names},
            "securitySchemes": _SCHEMES,
        },
    }


def _message(name: str) -> dict[str, Any]:
    schema = SCHEMAS[name]
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()
    described = {"name": name, "title": words, "contentType": JSON, "payload": ref(name)}
    return {**described, **({"summary": schema["description"]} if "description" in schema else {})}


def _channel(operation: Operation) -> dict[str, Any]:
    named = [each for each in operation.parameters if each.where == PATH]
    messages = {name: {"$ref": f"#/components/messages/{name}"} for name in (*operation.sends, *operation.receives)}
    described: dict[str, Any] = {"address": operation.path, "title": operation.summary, "messages": messages}
    described |= {"description": operation.description} if operation.description else {}
    described |= {"parameters": {each.name: {"description": each.description} for each in named}} if named else {}
    socket = {"query": _parameter_schema(operation, QUERY), "headers": _parameter_schema(operation, HEADER)}
    return {**described, "bindings": {"ws": {"method": "GET", **socket, "bindingVersion": "0.1.0"}}}


def _parameter_schema(operation: Operation, where: str) -> dict[str, Any]:
    given = [each for each in operation.parameters if each.where == where]
    members = {each.name: {"description": each.description, **each.schema} for each in given}
    return {"type": "object", "properties": members}


def _channel_operations(operation: Operation) -> dict[str, Any]:
    """Operations from the view of the service: it sends to clients and receives from them."""
    acts = {"send": operation.sends, "receive": operation.receives}
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


_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Triplewire</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code { font: 13px ui-monospace, monospace }
summary { cursor: pointer; padding: .2rem 0 } summary b { display: inline-block; min-width: 4.5rem }
details { border-bottom: 1px solid #8884 } details > div { margin: 0 0 1rem 4.5rem }
td { padding: 0 1rem 0 0; vertical-align: top }
</style>
"""


def html_page(document: Mapping[str, Any]) -> str:
    """The OpenAPI document as a page: a line for each operation, which expands. It needs no script."""
    info = document["info"]
    return "".join((
        _HEAD,
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>\n<p>{escape(info['summary'])} ",
        'For machines: <a href="openapi.json">openapi.json</a>, <a href="asyncapi.json">asyncapi.json</a>.</p>\n',
        *_operation_details(document["paths"]),
    ))  # fmt: skip


def _operation_details(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            head = f"<b>{method.upper()}</b> <code>{escape(path)}</code> {escape(operation['summary'])}"
            yield f'<details id="{operation["operationId"]}"><summary>{head}</summary><div>'
            yield f"<p>{escape(operation.get('description', ''))}</p>"
            yield _html_table(
                "takes", ((each["name"], each["description"]) for each in operation.get("parameters", ()))
            )
            yield _html_table("a body of", ((type, "") for type in operation.get("requestBody", {}).get("content", {})))
            answers = operation["responses"].items()
            yield _html_table("answers", ((status, _answer_text(described)) for status, described in answers))
            yield "</div></details>\n"


def _answer_text(described: Mapping[str, Any]) -> str:
    types = ", ".join(described.get("content", {}))
    return f"{described['description']}{': ' + types if types else ''}"


def _html_table(title: str, rows: Iterator[tuple[str, str]]) -> str:
    described = "".join(f"<tr><td><code>{escape(name)}</code><td>{escape(text)}" for name, text in rows)
    return f"<h4>{title}</h4><table>{described}</table>" if described else ""
