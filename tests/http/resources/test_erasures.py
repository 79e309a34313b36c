"""Erasure is asked for over HTTP, and its receipt never says what was erased."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.http.harness import House, data, house, run
from triplewire.http.app import EdgeParts
from triplewire.http.resources import erasures
from triplewire.http.resources.erasures import Erasures
from triplewire.model import ErasureScope, Kind
from triplewire.model.clock import ManualClock
from triplewire.storage.log.erasure_view import ErasureView
from triplewire.storage.registry.erasure import (
    ERASING,
    REDACTED,
    STEPS,
    ErasureReceipt,
    pending_erasures,
    request_entries,
)
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.testing import TWIN_KINDS, event, open_twin
from triplewire.testing.samples import EXAMPLE


@asynccontextmanager
async def erasable() -> AsyncIterator[House]:
    def guarded(parts: EdgeParts) -> EdgeParts:
        log = ErasureView(parts.log, partial(pending_erasures, parts.registry))  # type: ignore[arg-type]
        return replace(parts, log=log, routes=erasures.erasure_routes(Erasures(parts.registry, parts.clock)))

    async with house(change=guarded) as at:
        yield at


async def erase(at: House, path: str) -> dict[str, Any]:
    async with at.session.delete(at.url + path) as response:
        receipt: dict[str, Any] = await response.json()
        assert response.status == 202, receipt
        assert response.headers["Location"] == f"/erasures/{receipt['id']}"
    return receipt


async def get(at: House, path: str) -> Any:  # noqa: ANN401
    async with at.session.get(at.url + path) as response:
        assert response.status == 200
        return await response.json()


def test_a_receipt_says_how_far_it_is_and_not_what() -> None:
    async def scene() -> None:
        async with erasable() as at:
            receipt = await erase(at, f"/events/{quote(event(1).id, safe='')}?by=the+office")
            assert receipt["erases"] == "event"
            assert receipt["sha256"] == sha256(event(1).id.encode()).hexdigest()
            assert receipt["by"] == "the office"
            assert [each["step"] for each in receipt["steps"]] == list(STEPS)
            assert [each["state"] for each in receipt["steps"]] == ["done"] + ["waiting"] * (len(STEPS) - 1)
            assert receipt["completed"] is None
            assert event(1).id not in str(receipt)
            assert await get(at, f"/erasures/{receipt['id']}") == receipt
            (found,) = pending_erasures(at.twin.registry)
            assert (found.scope, found.name) == (ErasureScope.EVENT, event(1).id)

    run(scene())


def test_receipts_come_in_pages() -> None:
    async def scene() -> None:
        async with erasable() as at:
            made = [await erase(at, f"/events?subject=urn:{number}") for number in range(3)]
            first = await get(at, "/erasures?limit=2")
            rest = await get(at, f"/erasures?cursor={first['next']}")
            assert first["erasures"] + rest["erasures"] == made
            assert rest["next"] is None

    run(scene())


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/events", "?source= or ?subject="),
        ("/events?source=a&subject=urn:b", "give either"),
        ("/events?subject=no+iri", "subject must be an absolute IRI"),
        ("/events?subject=", "subject must be an absolute IRI"),
        ("/events?source=", "source must be printable"),
        (f"/events?source={'x' * 3000}", "characters"),
        ("/events?sauce=a", "there is no parameter sauce; there are by, source, subject"),
        ("/events/nothing", "is not an event id"),
        ("/events/urn:a?subject=urn:b", "there is no parameter subject"),
    ],
)
def test_what_names_nothing_is_refused(path: str, says: str) -> None:
    async def scene() -> None:
        async with erasable() as at:
            problem = await at.problem("DELETE", path)
            assert problem["status"] == 400
            assert says in problem["detail"]
            assert (await at.problem("GET", "/erasures/none"))["status"] == 404
            assert pending_erasures(at.twin.registry) == []

    run(scene())


def test_who_listens_is_not_told_from_the_moment_on_at_which_it_was_asked_for() -> None:
    """Neither of events nor of matches, from history or live, and nobody hears of a gap."""

    async def scene() -> None:
        async with erasable() as at:
            subscription = at.subscribe(Kind.EVENT)
            positions = at.append(1, 2, 3, 4)
            at.match([(position, subscription.since, None) for position in positions])
            await erase(at, f"/events/{quote(event(1).id, safe='')}")
            await erase(at, f"/events?subject={quote(f'{EXAMPLE}observation/3')}")
            for path in ("/streams/test?after=earliest", "/subscriptions/s1/notifications"):
                async with at.listen(path) as ear:
                    assert [data(each)["event"] for each in await ear.take(2)] == [event(2).id, event(4).id]
            async with at.listen("/streams/test?after=0000000000000001") as ear:
                assert data(await ear.next())["event"] == event(2).id

    run(scene())


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_what_was_set_can_be_blotted_out(kind: str) -> None:
    with open_twin(kind) as stores:
        receipt = ErasureReceipt("e", ErasureScope.SUBJECT, "digest", 1)
        position, _ = stores.registry.put(request_entries(receipt, "urn:anna"))
        stores.registry.put([("other", "x", {"name": "urn:anna"})])
        stores.registry.redact(position, REDACTED)
        assert pending_erasures(stores.registry) == []
        found = stores.registry.get(ERASING, "e")
        assert found is not None
        assert found.value == REDACTED
        assert [each.value for each in stores.registry.changes(0, position)] == [REDACTED]


def test_no_byte_of_a_name_is_left(tmp_path: Path) -> None:
    registry = SqliteRegistry(tmp_path / "log.db", ManualClock())
    position, _ = registry.put(request_entries(ErasureReceipt("e", ErasureScope.SUBJECT, "digest", 1), "urn:anna"))
    assert any(b"urn:anna" in path.read_bytes() for path in tmp_path.iterdir())
    registry.redact(position, REDACTED)
    assert not any(b"urn:anna" in path.read_bytes() for path in tmp_path.iterdir())
    registry.close()
