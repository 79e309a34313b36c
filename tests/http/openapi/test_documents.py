"""The documents for machines, compared with the router, and with the rules of those who define them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from aiohttp import hdrs, web
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.http.harness import house, run
from tests.http.openapi.edges import composed
from triplewire.http.delivery.options import FORMATS
from triplewire.http.openapi import operation_of, stream_operations
from triplewire.http.openapi.documents import SCHEMAS
from triplewire.http.openapi.generator import asyncapi, openapi
from triplewire.http.openapi.operations import Operation, served_operations

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def routes(tmp_path_factory: pytest.TempPathFactory) -> list[web.RouteDef]:
    """All that the router of an edge has, as it is composed for production."""

    async def found() -> list[web.RouteDef]:
        with composed(tmp_path_factory.mktemp("edge")) as app:
            return [
                web.RouteDef(route.method, route.resource.canonical, route.handler, {})
                for route in app.router.routes()
                if route.resource is not None and route.method != hdrs.METH_HEAD
            ]

    return run(found())


@pytest.fixture(scope="module")
def operations(routes: list[web.RouteDef]) -> list[Operation]:
    return served_operations(routes)


def test_every_route_is_in_the_document(routes: list[web.RouteDef], operations: list[Operation]) -> None:
    paths = openapi(operations, "1")["paths"]
    told = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    missing = sorted({(each.method, each.path) for each in routes} - told)
    assert not missing, f"these handlers say nothing of what they serve: {missing}; see @serves"
    assert told == {(each.method, each.path) for each in routes}


def test_operations_have_names_of_their_own(operations: list[Operation]) -> None:
    names = [each.id for each in operations]
    assert sorted(names) == sorted(set(names))


def test_operations_tell_what_they_take_and_how_they_answer(operations: list[Operation]) -> None:
    """An operation without answers, or one that leaves out a part of its path, tells nobody anything."""
    for operation in operations:
        parts = {part.strip("{}") for part in operation.path.split("/") if part[:1] == "{"}
        assert operation.answers, f"{operation.id} says nothing of its answers"
        named = {each.name for each in operation.parameters if each.where == "path"}
        assert named == parts, f"{operation.id} tells of {named} in {operation.path}"
        assert (operation.body is not None) == (operation.method in ("POST", "PUT", "PATCH")), operation.id
        assert operation.stream is None or operation.stream in parts, operation.id


def test_schemas_that_are_named_are_there(operations: list[Operation]) -> None:
    document = openapi(operations, "1")
    named = {ref.rpartition("/")[2] for ref in _refs(document) if ref.startswith("#/components/schemas/")}
    assert named <= SCHEMAS.keys()
    assert SCHEMAS.keys() <= named | {name for each in operations for name in _messages(each)}


def test_the_openapi_document_is_valid(operations: list[Operation]) -> None:
    document = orjson.loads(orjson.dumps(openapi(operations, "1")))
    assert [str(each) for each in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_the_asyncapi_document_is_valid(operations: list[Operation]) -> None:
    schema = orjson.loads(gzip.decompress((DATA / "asyncapi-3.0.0.json.gz").read_bytes()))
    document = orjson.loads(orjson.dumps(asyncapi(operations, "1", "localhost:8080")))
    found = jsonschema_rs.Draft7Validator(schema).iter_errors(document)
    assert [f"{each.instance_path}: {each.message[:200]}" for each in found] == []
    assert all(_resolves(document, ref) for ref in _refs(document))


def test_every_answer_without_an_end_is_a_channel(operations: list[Operation]) -> None:
    """Those that are told as server-sent events, or that become WebSockets."""
    lasting = {each.id for each in operations if _lasts(each)}
    assert set(asyncapi(operations, "1", "localhost")["channels"]) == lasting


def test_listeners_are_told_in_the_formats_of_the_edge() -> None:
    assert set(stream_operations.STREAM_FORMATS) == {each.media_type for each in FORMATS}


@pytest.mark.parametrize(
    ("path", "type"),
    [("/openapi.json", "application/json"), ("/asyncapi.json", "application/json"), ("/docs", "text/html")],
)
def test_documents_are_served_once_to_those_who_keep_them(path: str, type: str) -> None:
    async def check() -> None:
        async with house() as home:
            async with home.session.get(home.url + path) as response:
                assert (response.status, response.content_type) == (200, type)
                tag = response.headers["ETag"]
                assert len(await response.read()) > 1_000
            async with home.session.get(home.url + path, headers={"If-None-Match": tag}) as response:
                assert (response.status, response.headers["ETag"], await response.read()) == (304, tag, b"")
            async with home.session.get(home.url + path, headers={"If-None-Match": '"other"'}) as response:
                assert response.status == 200

    run(check())


def test_the_page_for_people_has_every_operation_and_nothing_from_elsewhere() -> None:
    async def check() -> None:
        async with house() as home, home.session.get(home.url + "/docs") as response:
            page = await response.text()
            async with home.session.get(home.url + "/openapi.json") as told:
                paths = (await told.json())["paths"]
            assert all(f'id="{each["operationId"]}"' in page for methods in paths.values() for each in methods.values())
            assert "<script" not in page
            assert "//" not in page.replace("<!doctype", "")
            assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")

    run(check())


def test_a_handler_that_serves_nothing_is_noticed() -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response()

    assert operation_of(handler) is None
    assert served_operations([web.RouteDef("GET", "/silent", handler, {})]) == []


def _messages(operation: Operation) -> tuple[str, ...]:
    return (*operation.sends, *operation.receives)


def _lasts(operation: Operation) -> bool:
    return 101 in operation.answers or any("text/event-stream" in each.types for each in operation.answers.values())


def _refs(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from _refs(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _refs(each)


def _resolves(document: Any, ref: str) -> bool:  # noqa: ANN401 - any JSON
    found = document
    for part in ref.removeprefix("#/").split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~"), None) if isinstance(found, dict) else None
    return found is not None
