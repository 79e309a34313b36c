"""Whoever does not see everything: what their queries carry, and what they read of the log, over sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pyarrow as pa

from tests.http.auth.test_auth import Acquaintances, bearer
from tests.http.harness import House, house, run
from triplewire.http.app import EdgeParts
from triplewire.security import Principal, Visibility
from triplewire.security.visibility import PatternSet
from triplewire.storage.registry.security import PolicyStore
from triplewire.testing.samples import EXAMPLE

POLICY = f"""
[default]
see = "allow"
publish = "allow"
[[see]]
name = "results are for doctors"
who = ["*"]
except = ["role:doctor"]
deny.predicates = ["<{EXAMPLE}result>"]
"""
PEOPLE = {
    "ann": Principal.granted("ann", ["query", "consume"], ["doctor"]),
    "bea": Principal.granted("bea", ["query", "consume"], ["nurse"]),
    "cem": Principal.granted("cem", ["query:test", "consume:other"], ["doctor"]),
}
RESULTS = PatternSet.of(["*"], [f"<{EXAMPLE}result>"])


@asynccontextmanager
async def guarded() -> AsyncIterator[House]:
    def change(parts: EdgeParts) -> EdgeParts:
        return replace(parts, authenticators=(Acquaintances(PEOPLE),))

    async with house(change=change) as at:
        yield at


async def carried(at: House, who: str, method: str = "GET") -> Visibility | None:
    """The visibility that the query of somebody goes on with."""
    given: dict[str, Any] = {"params" if method == "GET" else "data": {"query": "ASK {}"}}
    async with at.session.request(method, at.url + "/sparql", headers=bearer(who), **given) as response:
        found: dict[str, Any] = orjson.loads(await response.read())
    return Visibility.from_json(found["visibility"]) if "visibility" in found else None


async def read(at: House, who: str) -> list[str]:
    """The texts of the events that somebody reads."""
    async with at.session.get(at.url + "/events", headers=bearer(who)) as response:
        assert response.status == 200
        texts: list[str] = pa.ipc.open_stream(await response.read()).read_all()["text"].to_pylist()
        return texts


def test_a_query_carries_what_its_asker_sees_now() -> None:
    async def scene() -> None:
        async with guarded() as at:
            policies = PolicyStore(at.twin.registry)
            assert await carried(at, "bea") is None
            policies.load(POLICY)
            assert await carried(at, "ann") is None
            assert await carried(at, "bea") == await carried(at, "bea", "POST") == Visibility(predicates=RESULTS)
            assert await carried(at, "cem") == Visibility(streams=PatternSet.of(["test"]))
            policies.remove()
            assert await carried(at, "bea") is None

    run(scene())


def test_a_page_of_the_log_has_what_its_reader_sees() -> None:
    async def scene() -> None:
        async with guarded() as at:
            at.append(1)
            at.append(2, stream="other")
            PolicyStore(at.twin.registry).load(POLICY)
            whole = await read(at, "ann")
            assert len(whole) == 2
            assert all(f"<{EXAMPLE}result>" in text for text in whole)
            seen = await read(at, "bea")
            kept = [[line for line in text.split("\n") if f"<{EXAMPLE}result>" not in line] for text in whole]
            assert [text.split("\n") for text in seen] == kept
            assert await read(at, "cem") == whole[1:]

    run(scene())
