"""Checks: promises, each with the words that a report uses and the coroutine that finds out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic

import aiohttp

from tests.conformance.deployments.brokers import Broker

Run = Callable[[Broker], Awaitable[None]]


@dataclass(frozen=True)
class Check:
    """A promise. `live` says that matching, and so a pipeline, is needed to keep it; `closed`, that the door must be
    closed: where it stands open, the first token that is made might close it to everybody else."""

    group: str
    promise: str
    run: Run
    live: bool
    closed: bool


@dataclass(frozen=True)
class Finding:
    """What became of a check; `why` is empty where the promise was kept."""

    check: Check
    why: str
    seconds: float


class Group:
    """The checks of one kind, in the order in which they are written down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(self, promise: str, *, live: bool = False, closed: bool = False) -> Callable[[Run], Run]:
        def kept(run: Run) -> Run:
            self.checks.append(Check(self.name, promise, run, live, closed))
            return run

        return kept


async def put(check: Check, broker: Broker) -> Finding:
    """Find out. A deployment that does not answer in time breaks the promise as one does that answers wrongly."""
    began, why = monotonic(), ""
    try:
        async with asyncio.timeout(broker.patience):
            await check.run(broker)
    except TimeoutError:
        why = f"nothing came within {broker.patience:g} seconds"
    except (AssertionError, LookupError, ValueError, TypeError, EOFError, aiohttp.ClientError, OSError) as error:
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Finding(check, why, monotonic() - began)
