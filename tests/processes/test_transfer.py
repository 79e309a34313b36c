"""In, killed in the middle, in again, and out: through a whole broker, what comes out is what went in."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from tests.processes.hearing import until_stored
from triplewire.client import AsyncClient
from triplewire.model import Event, EventHeaders, StreamEvent
from triplewire.rdf import encode_addressed
from triplewire.service.supervisor import Supervisor
from triplewire.service.transfer.events import FILE_START, FileEvent, read_events
from triplewire.service.transfer.formats import choose_encoding
from triplewire.service.transfer.importer import Import, open_reader

pytestmark = pytest.mark.processes

EVENTS = 6_000
STREAMS = ("there", "back")


def said(number: int) -> StreamEvent:
    quads = [f'<urn:transfer:{number}>\t<urn:p{quad}>\t"value {number * quad} é"@en' for quad in range(1 + number % 3)]
    headers = EventHeaders(f"source {number % 7}", None, number * 1_000)
    return StreamEvent(STREAMS[number % 2], Event(f"urn:transfer:event:{number % 5_500}", "\n".join(quads), headers))


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "triplewire", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def batches(state: Path) -> int:
    """How many an import has had acknowledged, as far as it says."""
    try:
        return int(orjson.loads(state.read_bytes())["progress"]["batches"])
    except FileNotFoundError:
        return 0


def run(*arguments: str) -> None:
    with started(*arguments) as process:
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told


async def test_what_goes_in_through_kill_9_comes_out_once(broker: Supervisor, tmp_path: Path) -> None:
    path, state, out = tmp_path / "in.nq", tmp_path / "in.nq.import", tmp_path / "out.nq"
    path.write_bytes(encode_addressed(map(said, range(EVENTS))))
    command = ["import", str(path), "--url", broker.settings.url, "--on-error", "skip"]
    with started(*command) as process:
        while process.poll() is None and not batches(state):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        process.kill()
    if state.exists():
        run(*command, "--resume")
    async with AsyncClient(broker.settings.url) as client:
        await until_stored(client, (await client.health())["head"])
    streams = [word for stream in STREAMS for word in ("--stream", stream)]
    run("export", str(out), *streams, "--data", str(broker.settings.data))
    found = read_events(open_reader(Import(out, choose_encoding(out.name))), FILE_START, None)
    assert [each.addressed for each in found if isinstance(each, FileEvent)] == [
        said(number) for number in range(EVENTS)
    ]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.nq", "out.nq"]
