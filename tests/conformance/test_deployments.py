"""The suite for deployments, put to an edge that is right as far as it goes, and to servers that are not."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import orjson
import pytest
import uvloop
from aiohttp import web

from tests.conformance.__main__ import main
from tests.conformance.deployments.hearing import READERS, Message
from tests.conformance.deployments.suite import chosen, tried
from tests.http.openapi.edges import served, settings_in
from triplewire.http.delivery.options import FORMATS
from triplewire.http.resources.access_control import TokenManager, TokenRequest
from triplewire.model.clock import SystemClock
from triplewire.service.access import open_token_registry


@pytest.mark.usefixtures("compiled")
def test_an_edge_keeps_what_needs_no_pipeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(tmp_path) as url:
        status = main([url, "--no-pipeline", "--json"])
    told = orjson.loads(capsys.readouterr().out)
    assert [each for each in told["checks"] if not each["kept"]] == []
    assert (status, told["broken"], told["kept"]) == (0, 0, len(chosen(live=False, closed=False)))


def test_a_closed_door_lets_in_who_belongs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    access = open_token_registry(settings_in(tmp_path), SystemClock())
    _, token = TokenManager(access, SystemClock()).create(TokenRequest("suite", ("*",)))
    access.close()
    with served(tmp_path, "closed") as url:
        status = main([url, "--only", "auth", "--token", token, "--json"])
        told = orjson.loads(capsys.readouterr().out)
        assert main([url, "--only", "auth"]) == 1
    assert [each for each in told["checks"] if not each["kept"]] == []
    assert (status, told["kept"]) == (0, len(chosen(["auth"])))


def test_an_open_door_is_not_closed_by_it() -> None:
    assert not [each.promise for each in chosen(closed=False) if "token" in each.promise]


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        uvloop.run(tried(url, chosen(["subscribe", "publish"], live=False)))
        left = uvloop.run(_told(url, "/subscriptions"))
        erased = uvloop.run(_told(url, "/erasures"))
    assert left["subscriptions"] == []
    assert [(each["erases"], each["by"]) for each in erased["erasures"]] == [("source", "conformance")]


async def _told(url: str, path: str) -> dict[str, list[dict[str, object]]]:
    async with aiohttp.ClientSession() as session, session.get(url + path) as response:
        found: dict[str, list[dict[str, object]]] = await response.json()
        return found


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_server_that_says_the_same_to_everything_keeps_nothing(status: int) -> None:
    """A check that it passed would find out nothing."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({}, status=status)

    async def check() -> list[str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            found = await tried(f"http://127.0.0.1:{runner.addresses[0][1]}", chosen(), patience=10)
        finally:
            await runner.cleanup()
        return [each.check.promise for each in found if not each.why]

    assert uvloop.run(check()) == (["HEAD on a stream does not hang"] if status == 200 else [])


def test_nobody_at_the_address_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["http://127.0.0.1:9", "--only", "status"]) == 1
    assert "0 of 3 promises kept" in capsys.readouterr().out


def test_a_group_that_there_is_not_is_told() -> None:
    with pytest.raises(SystemExit) as told:
        main(["http://127.0.0.1:9", "--only", "nothing"])
    assert told.value.code == 2


@pytest.mark.parametrize(
    ("name", "data", "found"),
    [
        ("sse", b": hi\n\nid: 1\nevent: event\ndata: {}\n\nid:", [Message("event", "1", {})]),
        (
            "ndjson",
            b'\n{"type":"event","position":"1"}\n{',
            [Message("event", "1", {"type": "event", "position": "1"})],
        ),
        (
            "nquads",
            b'#\n# event {"position":"1"}\n<a> .\n\n#',
            [Message("event", "1", {"position": "1", "body": "<a> ."})],
        ),
        (
            "ztreamy",
            b"\nEvent-Id: a\r\nPosition: 1\r\nBody-Length: 1\r\n\r\nxE",
            [Message("event", "1", {"event": "a", "body": "x"})],
        ),
    ],
)
def test_messages_are_read_as_far_as_they_have_come(name: str, data: bytes, found: list[Message]) -> None:
    for cut in range(len(data) + 1):
        first, rest = READERS[name](data[:cut])
        second, _ = READERS[name](rest + data[cut:])
        assert first + second == found


def test_formats_that_are_heard_are_formats_of_the_edge() -> None:
    assert READERS.keys() <= {each.name for each in FORMATS}
