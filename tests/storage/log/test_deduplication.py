"""Names are found wherever the runs end that they lie in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event
from triplewire.model.clock import ManualClock
from triplewire.storage.log.appending import DeduplicationIndex, EventKey, Hashes, hash_events
from triplewire.storage.log.ports import AppendResult, Publication
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.testing import event


def hashes_of(names: Sequence[EventKey | None]) -> Hashes:
    events = [Event("urn:generated" if name is None else name[1], "") for name in names]
    return hash_events(Publication("s", events, given={name[1] for name in names if name}))


NAMES = st.one_of(st.none(), st.tuples(st.just("s"), st.sampled_from([f"urn:{n}" for n in range(30)])))


@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=9), max_size=20),
    st.sampled_from([2, 8, 1_000]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=80, deadline=None)
def test_every_position_of_a_name_is_found(groups: list[list[EventKey | None]], run: int, together: int) -> None:
    names, position, at, waiting = DeduplicationIndex(run), 1, dict[EventKey, list[int]](), list[tuple[int, bytes]]()
    for group in groups:
        waiting.append((position, hashes_of(group).tobytes()))
        if len(waiting) == together:
            names.add(waiting)
            waiting = []
        for number, name in enumerate(group, position):
            if name is not None:
                at.setdefault(name, []).append(number)
        position += len(group)
    names.add(waiting)
    asked = [("s", f"urn:{n}") for n in range(31)]
    for name in asked:
        assert sorted(names.find(hashes_of([name]))) == at.get(name, [])
    assert sorted(names.find(hashes_of(asked))) == sorted(n for each in at.values() for n in each)


def test_runs_are_let_go_when_all_in_them_is() -> None:
    names = DeduplicationIndex()
    known = hashes_of([("s", each) for each in "abcd"])
    names.add([(1, known[:3].tobytes())])
    names.add([(4, known[3:].tobytes())])
    names.forget(4)
    assert names.find(known) == [4]


def test_processes_know_what_others_have_stored(tmp_path: Path) -> None:
    clock = ManualClock()
    logs = [SqliteLog(tmp_path / "log.db", clock) for _ in range(2)]
    for number in range(20):
        given = Publication("s", [event(number)], given={event(number).id})
        (first,), (again,) = logs[number % 2].append([given]), logs[(number + 1) % 2].append([given])
        assert list(first) == list(again) == [number + 1]
        assert isinstance(again, AppendResult)
    late = SqliteLog(tmp_path / "log.db", clock)
    (found,) = late.append([Publication("s", [event(n) for n in range(20)], given={event(n).id for n in range(20)})])
    assert list(found) == list(range(1, 21))
    for log in (*logs, late):
        log.close()
