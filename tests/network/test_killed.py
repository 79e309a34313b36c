"""A relay process that is killed while events flow: below there is each of them once."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import uvloop

from tests.http.harness import House, house
from tests.network.edges import heard, ids, mirror, relayed
from triplewire.testing import event


@asynccontextmanager
async def process(file: Path, to: House) -> AsyncIterator[Process]:
    """A relay in a process of its own. At the end it is killed, if it is still there."""
    command = [sys.executable, "-m", "triplewire", "relay", str(file), "--json", "--url", to.url]
    started = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


def test_the_middle_of_three_levels_is_killed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house() as top, house() as middle, house() as low:
            file = tmp_path / "upper.toml"
            file.write_text(mirror(top))
            async with relayed(mirror(middle), tmp_path, low, "lower"):
                async with process(file, middle):
                    for number in range(200):
                        top.append(number)
                    # In the middle of its work: as soon as anything is through.
                    await heard(middle, 1)
                top.append(*range(200, 210))
                async with process(file, middle) as relay:
                    await heard(low, 210)
                    relay.terminate()
                    out, err = await relay.communicate()
            assert relay.returncode == 0, err
            assert orjson.loads(out.splitlines()[-1])["routes"][0]["from"] == f"{top.url}/streams/test"
            assert ids(low) == ids(middle) == ids(top) == [event(number).id for number in range(210)]

    # Processes take long to start where many do.
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scene())
