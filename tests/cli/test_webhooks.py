"""`triplewire webhooks` against an edge."""

from __future__ import annotations

import asyncio

import orjson
from typer.testing import CliRunner, Result

from tests.http.harness import run
from tests.http.webhooks.scenes import Scene, scene
from triplewire.cli.app import app
from triplewire.model import format_position
from triplewire.model.errors import NotFound


async def told(at: Scene, *command: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["webhooks", *command, "--url", at.at.url])


def test_what_was_not_taken_is_shown_delivered_again_and_given_up() -> None:
    async def story() -> None:
        async with scene(attempts=1) as at:
            assert "no webhook" in (await told(at, "list")).stdout
            made = await at.subscribe()
            at.receiver.replies += [500, 500]
            first, second = at.publish(made, count=2)
            await at.until(lambda: len(at.books.dead_letters(made["id"], limit=9)) == 2)
            (hook,) = orjson.loads((await told(at, "list", "--json")).stdout)
            assert (hook["id"], hook["parked"], hook["state"]) == (made["id"], 2, "on")
            assert "on" in (await told(at, "list")).stdout
            found = orjson.loads((await told(at, "dead", made["id"], "--json")).stdout)
            assert [each["position"] for each in found] == [format_position(first), format_position(second)]
            assert "answered 500" in (await told(at, "dead", made["id"])).stdout
            assert "1 will be" in (await told(at, "replay", made["id"], "--position", format_position(first))).stdout
            await at.until(lambda: len(at.books.dead_letters(made["id"], limit=9)) == 1)
            assert (await told(at, "drop", made["id"], "--position", format_position(second))).exit_code == 0
            assert "there are no dead letters" in (await told(at, "dead", made["id"])).stdout
            assert isinstance((await told(at, "dead", "other")).exception, NotFound)

    run(story())
