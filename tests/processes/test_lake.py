"""The lake of a running broker, kept in order by command from beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import orjson
import pytest

from tests.processes.hearing import until_stored
from triplewire.client import AsyncClient
from triplewire.config.settings import to_environment
from triplewire.service.supervisor import Supervisor

pytestmark = pytest.mark.processes

COUNT = "SELECT (COUNT(*) AS ?n) { ?s <urn:lake:value> ?v }"


def lake(broker: Supervisor, *arguments: str) -> Any:  # noqa: ANN401 - a JSON value
    command = [sys.executable, "-m", "triplewire", "lake", *arguments, "--json"]
    variables = {**os.environ, **to_environment(broker.settings), "TRIPLEWIRE_SUPERVISOR": "0"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=variables)
    assert done.returncode == 0, done.stderr
    return orjson.loads(done.stdout)


def quad(number: int) -> str:
    value = f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<urn:lake:{number}> <urn:lake:value> {value} <urn:lake:e{number}> .\n"


async def counted(client: AsyncClient) -> int:
    answer = await client.query(COUNT)
    return int(answer["results"]["bindings"][0]["n"]["value"])


@pytest.mark.timeout(300)
async def test_compaction_beside_a_running_broker(broker: Supervisor) -> None:
    async with AsyncClient(broker.settings.url) as client:
        for first in range(0, 2_000, 1_000):
            taken = await client.publish("lake", "".join(map(quad, range(first, first + 1_000))))
            await until_stored(client, taken["last"])
        before = await counted(client)
        assert before == 2_000
        assert lake(broker, "status")["fresh"] > 1
        done = lake(broker, "compact")
        assert done["quads"] >= 2_000
        assert done["files"] < done["files_before"]
        assert await counted(client) == before
        taken = await client.publish("lake", "<urn:lake:x> <urn:lake:value> 1 .", "text/turtle")
        await until_stored(client, taken["last"])
        assert await counted(client) == before + 1
        assert lake(broker, "versions")[0]["version"] == lake(broker, "status")["version"]
