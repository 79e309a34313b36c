"""What is erased is gone: from every twin of log and outbox, and to the last byte where there are bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import END, MATCHES, Erasure, ErasureScope, Event, EventHeaders
from triplewire.model.clock import ManualClock
from triplewire.storage.log.erasure_view import ErasureView
from triplewire.storage.log.ports import AppendResult, Log, LogRetention, Publication
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import OutboxLane, SqliteOutbox
from triplewire.testing import TWIN_KINDS, Twin, event, open_twin, publication
from triplewire.testing.samples import EXAMPLE

ANNA = f"{EXAMPLE}anna"
KNOWS = f"<{EXAMPLE}bob>\t<{EXAMPLE}knows>\t<{ANNA}>"
NAMED = f'<{ANNA}>\t<{EXAMPLE}name>\t"Anna Secretperson"'
SAID = f"<{EXAMPLE}bob>\t<{EXAMPLE}said>\t<<( <{ANNA}> <{EXAMPLE}is> <{EXAMPLE}here> )>>"
OTHER = f'<{EXAMPLE}bob>\t<{EXAMPLE}name>\t"Bob, not <{ANNA}>"'
LONGER = f"<{ANNA}s>\t<{EXAMPLE}p>\t<{EXAMPLE}o>"
LINES = (KNOWS, NAMED, SAID, OTHER, LONGER)


def erasure(scope: ErasureScope, name: str, position: int = END) -> Erasure:
    return Erasure("e", scope, name, position)


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def rows(log: Log, after: int = 0, limit: int = 100) -> list[tuple[int, str]]:
    found = log.read(after, END, limit)
    return list(zip(found["position"].to_pylist(), found["text"].to_pylist(), strict=True))


def test_an_event_goes_and_its_position_is_nobody_elses(stores: Twin) -> None:
    stores.log.append([publication(1, 2, 3)])
    stores.log.erase(erasure(ErasureScope.EVENT, event(2).id))
    assert [at for at, _ in rows(stores.log)] == [1, 3]
    assert stores.log.entries([1, 2])["position"].to_pylist() == [1]
    assert stores.log.append([publication(4)]) == [range(4, 5)]
    assert stores.log.page_end(0, 4, 1_000_000) == 4


def test_what_was_erased_at_the_beginning_is_not_taken_for_trimmed(stores: Twin) -> None:
    stores.log.append([publication(1, 2, 3)])
    for number in (1, 2):
        stores.log.erase(erasure(ErasureScope.EVENT, event(number).id))
    assert stores.log.begin() == 1
    stores.clock.advance(10)
    assert stores.log.trim(LogRetention(age=1), before=3) == 2
    assert stores.log.begin() == 3
    stores.log.trim(LogRetention(age=1), before=END)
    assert stores.log.begin() == 4


def test_a_source_goes_with_all_its_events_and_no_other(stores: Twin) -> None:
    sources = ("a", "b", None, "a")
    events = [Event(event(n).id, event(n).text, EventHeaders(source=each)) for n, each in enumerate(sources)]
    stores.log.append([Publication("s", events)])
    assert stores.log.losses(erasure(ErasureScope.SOURCE, "a")).to_pylist() == [
        {"position": 1, "quads": 2, "first": None, "extensions": None},
        {"position": 4, "quads": 2, "first": None, "extensions": None},
    ]
    stores.log.erase(erasure(ErasureScope.SOURCE, "a"))
    assert [at for at, _ in rows(stores.log)] == [2, 3]


def test_extensions_stay_for_as_long_as_anything_does(stores: Twin) -> None:
    named, said = f"<{ANNA}>\t<urn:p>\t<urn:o>", EventHeaders(extensions={"X-A": "1"})
    texts = (f"{named}\n{OTHER}", f"{OTHER}\n{named}", named)
    stores.log.append([Publication("s", [Event(f"urn:{n}", text, said) for n, text in enumerate(texts)])])
    asked = erasure(ErasureScope.SUBJECT, ANNA)
    moved = {each["position"]: each["extensions"] for each in stores.log.losses(asked).to_pylist()}
    assert moved == {1: '{"X-A":"1"}', 2: None, 3: None}
    stores.log.erase(asked)
    assert stores.log.read(0, END, 9)["extensions"].to_pylist() == ['{"X-A":"1"}'] * 2


def test_what_is_published_after_the_erasure_stays(stores: Twin) -> None:
    stores.log.append([publication(1)])
    (position,) = stores.registry.put([("erasing", "e", {})])
    stores.log.append([publication(1)])
    stores.log.erase(erasure(ErasureScope.EVENT, event(1).id, position))
    assert [at for at, _ in rows(stores.log)] == [position + 1]


def test_an_event_that_is_the_subject_itself_goes_whole(stores: Twin) -> None:
    stores.log.append([Publication("s", [Event(ANNA, OTHER)])])
    stores.log.erase(erasure(ErasureScope.SUBJECT, ANNA))
    assert rows(stores.log) == []


@given(st.lists(st.lists(st.sampled_from(LINES), min_size=1, max_size=4, unique=True), max_size=5), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_of_a_subject_the_quads_that_name_it_go_and_a_guard_shows_what_will_be_left(
    events: list[list[str]], limit: int
) -> None:
    expected = [
        (at, "\n".join(kept))
        for at, lines in enumerate(events, 1)
        if (kept := [line for line in lines if line in (OTHER, LONGER)])
    ]
    lost = [(at, n) for at, lines in enumerate(events, 1) if (n := sum(line not in (OTHER, LONGER) for line in lines))]
    asked = erasure(ErasureScope.SUBJECT, ANNA)
    for kind in TWIN_KINDS:
        with open_twin(kind) as stores:
            stores.log.append([Publication("s", [Event(f"urn:{n}", "\n".join(e)) for n, e in enumerate(events)])])
            guarded = ErasureView(stores.log, lambda: [asked])
            assert paged(guarded, limit) == rows(guarded) == expected
            whole = [at for at in range(1, len(events) + 1) if at not in dict(lost)]
            assert guarded.entries(range(1, 9))["position"].to_pylist() == whole
            found = stores.log.losses(asked)
            assert [(each["position"], each["quads"]) for each in found.to_pylist()] == lost
            for _ in range(2):
                stores.log.erase(asked)
                assert rows(stores.log) == expected
            assert stores.log.losses(asked).num_rows == 0


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_what_is_being_erased_is_stored_again_when_it_comes_again(kind: str) -> None:
    with open_twin(kind) as stores:
        events = [event(1), event(2)]
        given = Publication("s", events, given=frozenset(each.id for each in events))
        stores.log.append([given])
        guarded = ErasureView(stores.log, lambda: [Erasure("x", ErasureScope.EVENT, event(1).id, 3)])
        (answer,) = guarded.append([given])
        assert list(answer) == [3, 2]
        other = Publication("s", [event(1, 7.0)], given={event(1).id})
        (answer,) = guarded.append([other])
        assert list(answer) == [4]


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_of_events_that_are_taken_apart_those_come_anew_whose_ids_are_being_erased(kind: str) -> None:
    with open_twin(kind) as stores:
        known = frozenset(event(number).id for number in range(5))
        stores.log.append([Publication("s", [event(1), event(2), event(3)], given=known)])
        guarded = ErasureView(stores.log, lambda: [Erasure("x", ErasureScope.EVENT, event(1).id, 4)])
        changed = Publication("s", [event(1, 7.0), event(2, 7.0), event(3), event(4)], given=known, apart=True)
        (answer,) = guarded.append([changed])
        assert isinstance(answer, AppendResult)
        assert (list(answer), answer.repeated, dict(answer.others)) == ([5, 2, 3, 4], 1, {event(2).id: 2})


def paged(log: ErasureView, limit: int) -> list[tuple[int, str]]:
    """Page by page, as everyone reads: fewer than asked for are the last."""
    found: list[tuple[int, str]] = []
    while page := rows(log, found[-1][0] if found else 0, limit):
        found += page
        if len(page) < limit:
            break
    return found


def test_no_byte_of_it_is_left_in_the_log(tmp_path: Path) -> None:
    """Events of all sizes, so that rows lie in one page, in several, and move when their neighbours shrink or go."""
    clock = ManualClock()
    log = SqliteLog(tmp_path / "log.db", clock)
    for number in range(300):
        text = "\n".join((OTHER, f'<{ANNA}>\t<{EXAMPLE}name>\t"Secretperson {"x" * (number * 37 % 9_000)}"'))
        clock.advance(1)
        log.append([Publication("s", [Event(f"urn:{number}", text, EventHeaders(source="Secretsource"))])])
    log.trim(LogRetention(age=250), before=END)
    log.erase(erasure(ErasureScope.SUBJECT, ANNA, 200))
    assert b"Secretperson" in everything(tmp_path)
    log.erase(erasure(ErasureScope.SUBJECT, ANNA))
    assert b"Secretperson" not in everything(tmp_path)
    assert b"Secretsource" in everything(tmp_path)
    log.erase(erasure(ErasureScope.SOURCE, "Secretsource"))
    assert b"Secretsource" not in everything(tmp_path)
    log.close()


def test_no_byte_of_it_is_left_in_the_outbox(tmp_path: Path) -> None:
    outbox = SqliteOutbox(tmp_path / "outbox.db")
    for batch in range(4):
        found = [
            {"position": 10 * batch + at, "subscription": 7, "terms": [f"Secret{at}{'x' * 3_000}"]} for at in (1, 2)
        ]
        outbox.write(batch, 10 * batch + 5, pa.Table.from_pylist(found, schema=MATCHES))
    assert outbox.erase([1, 2, 11, 21, 31]) == 5
    assert [chunk.matches["position"].to_pylist() for chunk in outbox.read(0, 9)] == [[12], [22], [32]]
    assert outbox.erase([1, 2, 11, 21, 31]) == outbox.erase([]) == 0
    assert b"Secret1" not in everything(tmp_path)
    assert b"Secret2" in everything(tmp_path)
    assert outbox.head() == 35
    outbox.close()


def test_matches_of_erased_events_are_not_handed_out(stores: Twin) -> None:
    outbox = stores.outbox("run")
    rows = [{"position": at, "subscription": 7} for at in (1, 2, 3)]
    outbox.write(0, 5, pa.Table.from_pylist(rows, schema=MATCHES))
    assert outbox.erase([2]) == 1
    assert [chunk.matches["position"].to_pylist() for chunk in outbox.read(0, 9)] == [[1, 3]]
    assert outbox.erase([1, 3]) == 2
    assert outbox.read(0, 9) == []


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_a_match_across_events_goes_with_any_event_that_may_be_in_it(kind: str) -> None:
    """Its ends are known, and what lies between them is not; a row that tells of a limit is of one event."""
    matches = [{"position": newest, "group": 1, "value": oldest} for newest, oldest in ((2, 1.0), (6, 3.0), (9, 7.0))]
    told = pa.Table.from_pylist([*matches, {"position": 9, "subscription": 4, "limit": "state"}], schema=MATCHES)
    with open_twin(kind) as stores:
        outbox = stores.outbox("run")
        outbox.write(0, 9, told, OutboxLane.CONTINUOUS)
        assert outbox.erase([4, 10]) == 1
        assert outbox.erase([4, 10]) == 0
        (chunk,) = outbox.read(0, 10, OutboxLane.CONTINUOUS)
        assert chunk.matches["position"].to_pylist() == [2, 9, 9]
        assert outbox.erase([9]) == 2
