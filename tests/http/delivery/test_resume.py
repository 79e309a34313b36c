"""Resumptions: what `after` may be, and where that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.http.archives import MemoryArchive
from tests.http.harness import run
from triplewire.http.delivery.replay import Gap, ResumePosition, ResumeRequest, ResumeResolver, TieredHistory
from triplewire.http.ports import ThreadPool
from triplewire.model import Kind, Subscription, format_position
from triplewire.model.errors import BadRequest
from triplewire.storage.log.ports import LogRetention
from triplewire.testing import TWIN_KINDS, Twin, event, open_twin, publication

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("now", ResumeRequest()),
        ("earliest", ResumeRequest("earliest", position=0)),
        (format_position(31), ResumeRequest(format_position(31), position=31)),
        ("1970-01-01T00:00:10Z", ResumeRequest("1970-01-01T00:00:10Z", time=10 * SECOND)),
        ("1970-01-01", ResumeRequest("1970-01-01", time=0)),
        ("1970-01-01T01:00:10.5+01:00", ResumeRequest("1970-01-01T01:00:10.5+01:00", time=10_500_000)),
        ("1970-01-01T01:00:10 01:00", ResumeRequest("1970-01-01T01:00:10 01:00", time=10 * SECOND)),
        ("urn:uuid:1", ResumeRequest("urn:uuid:1", event="urn:uuid:1")),
        ("http://example.org/1", ResumeRequest("http://example.org/1", event="http://example.org/1")),
    ],
)
def test_what_it_may_be(text: str, asked: ResumeRequest) -> None:
    assert ResumeRequest.parsed(text) == asked


@pytest.mark.parametrize(
    "text", ["", "latest", "12", "2026-13-01", "2026-01-01T25:00:00Z", "no iri:", "1 a:b", "g" * 16]
)
def test_anything_else_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(BadRequest, match=r"`now`, `earliest`, a position, .*, a time .*, or the absolute IRI"):
        ResumeRequest.parsed(text)


@contextmanager
def prepared(stores: Twin) -> Iterator[ResumeResolver]:
    """An event a second, from second 1 on, in turn of two streams; the first four are in the archive alone, the first
    two of one stream nowhere."""
    for number in range(1, 9):
        stores.clock.advance(1)
        stores.log.append([publication(number, stream="ab"[number % 2])])
    archive = MemoryArchive()
    archive.store(stores.log.read(0, 8, 8), 8)
    stores.log.trim(LogRetention(size=0), before=5)
    archive.retain(4, ["a"])
    workers = ThreadPool(1, "read")
    yield ResumeResolver(TieredHistory(stores.log, archive), stores.clock, workers, workers)
    workers.close()


def subscription(**fields: Any) -> Subscription:  # noqa: ANN401
    return Subscription("s", None, Kind.SIGNAL, "shape", (), since=1, **fields)


@pytest.mark.parametrize("kind", TWIN_KINDS)
@pytest.mark.parametrize(
    ("stream", "text", "start"),
    [
        ("b", "now", ResumePosition(8)),
        ("b", "earliest", ResumePosition(0)),
        ("a", "earliest", ResumePosition(0, 4)),
        ("b", format_position(2), ResumePosition(2)),
        ("a", format_position(1), ResumePosition(1, 4, Gap(2, 4))),
        ("a", format_position(4), ResumePosition(4, 4)),
        ("a", format_position(99), ResumePosition(8, 4, Gap(1, 8))),
        ("b", event(3).id, ResumePosition(3)),
        ("b", event(7).id, ResumePosition(7)),
        ("a", event(6).id, ResumePosition(6, 4)),
        ("a", event(2).id, ResumePosition(0, 4, Gap(1, 4))),
        ("a", event(7).id, ResumePosition(0, 4, Gap(1, 4))),
    ],
)
def test_where_it_is(kind: str, stream: str, text: str, start: ResumePosition) -> None:
    with open_twin(kind) as stores, prepared(stores) as resumptions:
        found = run(resumptions.resolve_stream(ResumeRequest.parsed(text), stream))
        assert found == ResumePosition(start.after, 4 if stream == "a" else 0, start.gap)


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_a_time_is_the_time_of_arrival(kind: str) -> None:
    with open_twin(kind) as stores:
        begun = stores.clock.now()
        with prepared(stores) as resumptions:
            seek(begun, resumptions)


def seek(begun: int, resumptions: ResumeResolver) -> None:
    def at(seconds: float, stream: str = "b") -> ResumePosition:
        return run(resumptions.resolve_stream(ResumeRequest(time=begun + int(seconds * SECOND)), stream))

    assert [at(each).after for each in (1, 1.5, 3, 4.5, 6.5, 8, 8.5)] == [0, 1, 1, 3, 6, 7, 8]
    assert [at(each).gap for each in (0, 2, 9)] == [None, None, None]
    assert [at(each, "a").gap for each in (0, 2, 6)] == [Gap(1, 4), Gap(2, 4), None]
    assert at(3600).after == 8


@pytest.mark.parametrize(
    ("text", "fields", "start"),
    [
        (None, {}, ResumePosition(1)),
        (None, {"begins": 0}, ResumePosition(0)),
        ("now", {}, ResumePosition(8, 4)),
        ("earliest", {}, ResumePosition(1, 4, Gap(1, 4))),
        (format_position(3), {}, ResumePosition(3, 4, Gap(4, 4))),
        (format_position(3), {"stream": "b"}, ResumePosition(3, 3)),
        (format_position(2), {"stream": ("b", "c")}, ResumePosition(2, 3, Gap(3, 3))),
        (format_position(2), {"begins": 0}, ResumePosition(2, 4)),
        (format_position(5), {}, ResumePosition(5, 4)),
        (event(7).id, {}, ResumePosition(7, 4)),
        ("urn:none", {}, ResumePosition(1, 4, Gap(1, 4))),
        (format_position(99), {}, ResumePosition(8, 4, Gap(1, 8))),
    ],
)
def test_where_a_subscription_goes_on(text: str | None, fields: dict[str, Any], start: ResumePosition) -> None:
    asked = None if text is None else ResumeRequest.parsed(text)
    with open_twin("memory") as stores, prepared(stores) as resumptions:
        assert run(resumptions.resolve_subscription(asked, subscription(**fields))) == start
