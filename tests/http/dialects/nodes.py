"""Programs for Node, with packages from npm: clients that we did not write."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

HERE = Path(__file__).parent
NODE = shutil.which("node")
_READY = NODE is not None and (HERE / "node_modules").is_dir()

needs_node = pytest.mark.skipif(not _READY, reason="needs Node, and `make nodes`, which gets packages from npm")


@dataclass(frozen=True)
class Program:
    """One that runs, and prints lines of JSON."""

    process: asyncio.subprocess.Process

    async def next(self) -> Any:  # noqa: ANN401 - whatever it prints
        assert self.process.stdout
        line = await self.process.stdout.readline()
        if not line:
            raise EOFError
        return orjson.loads(line)

    async def take(self, count: int) -> list[Any]:
        return [await self.next() for _ in range(count)]

    async def rest(self) -> list[Any]:
        """All that it prints until it ends, which it does well."""
        found = []
        with suppress(EOFError):
            while True:
                found.append(await self.next())
        assert await self.process.wait() == 0
        return found


@asynccontextmanager
async def program(script: str, *arguments: str, **environment: str) -> AsyncIterator[Program]:
    assert NODE, "there is no Node"
    process = await asyncio.create_subprocess_exec(
        NODE, str(HERE / script), *arguments, stdout=PIPE, env={**os.environ, **environment}
    )
    try:
        yield Program(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
