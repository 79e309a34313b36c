"""A whole broker forgets, over kill -9: nobody is told, nothing is found, and no byte is left."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from bench.processes import free_port
from tests.processes.hearing import hear_all, until_stored
from tests.processes.test_crashes import edge, faulty_pipeline
from tests.storage.lake.traces import traces
from triplewire.cli.app import app
from triplewire.config import Settings
from triplewire.testing import event
from triplewire.testing.samples import EXAMPLE

pytestmark = pytest.mark.processes

ANNA, SECRET = f"{EXAMPLE}anna", "Anna Secretperson"
QUERY = f"SELECT ?name {{ ?who <{EXAMPLE}name> ?name }}"


def quads(number: int) -> str:
    graph = f"<{event(number).id}>"
    named = f'<{ANNA}> <{EXAMPLE}name> "{SECRET}" {graph} .\n'
    return named + f'<{EXAMPLE}bob> <{EXAMPLE}name> "Bob {number}" {graph} .\n'


@pytest.mark.timeout(400)
async def test_a_broker_forgets_whatever_dies(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, port=free_port(), query_seconds=1.0)
    async with edge(settings) as (_, client):
        made = await client.subscribe(f"SELECT (UCASE(?n) AS ?name) {{ ?who <{EXAMPLE}name> ?n }}", kind="bindings")
        for number in range(3):
            receipt = await client.publish("people", quads(number))
        pipeline = await faulty_pipeline(settings, "before-erasure")
        await until_stored(client, receipt["last"])
        assert len((await client.query(QUERY))["results"]["bindings"]) == 4
        assert len(traces(tmp_path, SECRET)) >= 3
        await client.publish("people", quads(3))
        asked = await client.erase("subject", ANNA)
        assert await pipeline.wait() == -signal.SIGKILL
        assert (await client.erasure(asked["id"]))["completed"] is None

        pipeline = await faulty_pipeline(settings, "never")
        waited = ["erase", "receipt", asked["id"], "--wait", "--json", "--url", settings.url]
        done = await asyncio.to_thread(CliRunner().invoke, app, waited)
        assert orjson.loads(done.stdout)["completed"], done.output
        assert traces(tmp_path, ANNA, SECRET, SECRET.upper()) == []
        found = (await client.query(QUERY))["results"]["bindings"]
        assert sorted(each["name"]["value"] for each in found) == [f"Bob {number}" for number in range(4)]

        receipt = await client.publish("people", quads(4))
        await until_stored(client, receipt["last"])
        (heard,) = await hear_all(settings.url, [made["id"]])
        assert [each["event"] for each in heard] == [event(4).id], "what was matched before is told no more"
        pipeline.terminate()
        assert await pipeline.wait() == 0
