"""A thousand hostile queries: each ends within its limits, and the next query is answered as usual.

The threat is a query that takes the process down, its stack or memory exhausted, or keeps it from all others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.differential.hostile import queries
from tests.storage.lake.test_delta import entries
from triplewire.config import Settings
from triplewire.config.settings import to_environment
from triplewire.config.workers import WorkerCommand
from triplewire.history.pool import QueryWorkerPool
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model import Event
from triplewire.model.errors import BodyTooLarge, QueryLimit, SparqlSyntax, Unsupported
from triplewire.sparql import compile_query, parse_query
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch

ALLOWED = (SparqlSyntax, Unsupported, BodyTooLarge, QueryLimit)
SECONDS = 0.1
MEMORY = "256MB"
NODES = 25
COMPILED_CHARACTERS = 1_000
"""Longer queries are compiled by the processes alone, which may be ended."""
USUAL = "ASK { <urn:0> <urn:link> <urn:1> }"


def test_there_are_a_thousand() -> None:
    texts = [text for _, text in queries()]
    assert len(texts) >= 1_000
    assert texts == [text for _, text in queries()]


def broken(texts: Iterable[tuple[str, str]], work: Callable[[str], object]) -> dict[str, str]:
    """Those that are neither done nor refused."""
    wrong = {}
    for name, text in texts:
        try:
            work(text)
        except ALLOWED:
            continue
        except Exception as error:
            wrong[name] = type(error).__name__
    return wrong


def test_each_is_parsed_or_refused() -> None:
    assert broken(queries(), parse_query) == {}


def test_each_is_compiled_or_refused() -> None:
    short = ((name, text) for name, text in queries() if len(text) <= COMPILED_CHARACTERS)
    assert broken(short, lambda text: compile_query(parse_query(text), "duckdb")) == {}


def clique(data: Path) -> Settings:
    """A lake of nodes that are all linked with each other, and of texts for patterns to stumble over."""
    settings = Settings(data=data, query_memory=MEMORY, query_rows=10_000)
    links = [f"<urn:{one}>\t<urn:link>\t<urn:{two}>" for one in range(NODES) for two in range(NODES) if one != two]
    texts = [f'<urn:{number}>\t<urn:text>\t"{"a" * 5_000}{number}"' for number in range(NODES)]
    file = FileWriter(settings.lake).write(
        entries(Event("urn:links", "\n".join(links)), Event("urn:t", "\n".join(texts)))
    )
    DeltaLake(settings.lake).commit(CommitBatch("q", 0, 2), [file])
    return settings


async def answered(pool: QueryWorkerPool, text: str, seconds: float | None = None) -> bytes:
    answer = await pool.ask(HistoryRequest(text, seconds=seconds))
    return b"".join([piece async for piece in answer])


async def stalled(pool: QueryWorkerPool, share: list[tuple[str, str]]) -> dict[str, str]:
    """Those that ended in another way than they may, or after which a usual query was not answered."""
    wrong = {}
    for name, text in share:
        try:
            await answered(pool, text, SECONDS)
        except ALLOWED:
            pass
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error}"
        if b"true" not in await answered(pool, USUAL):
            wrong[name] = "the next query was not answered"
    return wrong


@pytest.mark.processes
@pytest.mark.timeout(400)
async def test_each_ends_and_the_next_query_is_answered(tmp_path: Path) -> None:
    settings = clique(tmp_path)
    launch = WorkerCommand(
        (sys.executable, "-m", "triplewire.service.query_process", "duckdb"), to_environment(settings)
    )
    every = list(queries())
    pools = [QueryWorkerPool(launch, QueryLimits.from_settings(settings), processes=1, grace=0.1) for _ in range(2)]
    try:
        found = await asyncio.gather(*(stalled(pool, every[number::2]) for number, pool in enumerate(pools)))
    finally:
        for pool in pools:
            pool.close()
    assert {name: why for wrong in found for name, why in wrong.items()} == {}
