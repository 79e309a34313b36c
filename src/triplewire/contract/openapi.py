"""The OpenAPI 3.1 document: every route, with what it takes and how it answers, for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from triplewire.contract.operations import Content, Operation, Parameter
from triplewire.contract.routes import Route
from triplewire.contract.schemas import SCHEMAS, ref
from triplewire.contract.schemas.shared import PROBLEM

PROBLEM_TYPE = "application/problem+json"

DOOR = (401, 403, 429)
"""Problems of whoever stands at the door: not known, not allowed, too many."""
ANYWHERE = (400, 413, 503)
"""Problems that any request may have: one that is no HTTP, or too large; an edge that closes."""

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
    "jwt": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "Of an issuer that is trusted."},
    "parameter": {
        "type": "apiKey",
        "in": "query",
        "name": "access_token",
        "description": "Either of them, for browsers: an EventSource and a WebSocket have no headers of one's own.",
    },
}
_HEADERS: Mapping[str, Any] = {
    "Position": {"description": "From where to resume", "schema": ref("Mark")},
    "ETag": {"description": "The same for the same document", "schema": {"type": "string"}},
    "Cache-Control": {"description": "For how long, and by whom, it may be kept", "schema": {"type": "string"}},
    "Link": {"description": "Where to go on (`rel=next`), or where else it can be heard", "schema": {"type": "string"}},
    "Location": {"description": "Where it is", "schema": {"type": "string", "format": "uri-reference"}},
    "Retry-After": {"description": "In how many seconds to try again", "schema": {"type": "string"}},
}


def openapi(routes: Iterable[Route], version: str, server: str = "/") -> dict[str, Any]:
    """The document. It is the same for the same routes, whoever asks."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {**_INFO, "version": version},
        "servers": [{"url": server}],
        "paths": paths,
        "components": {"schemas": SCHEMAS, "headers": _HEADERS, "securitySchemes": SECURITY_SCHEMES},
    }


def _operation(route: Route) -> dict[str, Any]:
    operation = route.operation
    told: dict[str, Any] = {"operationId": operation.id, "summary": operation.summary}
    told |= {"description": operation.description} if operation.description else {}
    told |= {"parameters": [_parameter(each) for each in operation.parameters]} if operation.parameters else {}
    if operation.body is not None:
        told["requestBody"] = {"required": True, **_content(operation.body)}
    told["responses"] = _responses(operation)
    if operation.verbs:
        shown = ("token", "jwt", "parameter") if operation.lasts and route.method == "GET" else ("token", "jwt")
        told["security"] = [{name: []} for name in shown]
        told["x-verbs"] = [str(each) for each in operation.verbs]
    return told


def _parameter(parameter: Parameter) -> dict[str, Any]:
    told = {"name": parameter.name, "in": parameter.where, "description": parameter.description}
    return {**told, "schema": parameter.schema, **({"required": True} if parameter.required else {})}


def _content(content: Content) -> dict[str, Any]:
    types = {type: {"schema": ref(name)} if name else {} for type, name in content.types.items()}
    return {**({"description": content.description} if content.description else {}), "content": types}


def _responses(operation: Operation) -> dict[str, Any]:
    answers = {status: _answer(status, each) for status, each in operation.answers.items()}
    kinds = {*operation.problems, *ANYWHERE, *DOOR}
    problems = {status: _problem(status) for status in kinds if status not in operation.answers}
    return {str(status): told for status, told in sorted({**answers, **problems}.items())}


def _answer(status: int, content: Content) -> dict[str, Any]:
    told: dict[str, Any] = {"description": content.description or HTTPStatus(status).phrase}
    told |= (
        {"headers": {name: {"$ref": f"#/components/headers/{name}"} for name in content.headers}}
        if content.headers
        else {}
    )
    return told | ({"content": _content(content)["content"]} if content.types else {})


def _problem(status: int) -> dict[str, Any]:
    told = {"description": HTTPStatus(status).phrase, "content": {PROBLEM_TYPE: {"schema": ref(PROBLEM)}}}
    retried = {"headers": {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}} if status in (429, 503) else {}
    return {**told, **retried}
