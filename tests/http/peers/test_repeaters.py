"""Repeaters that an edge was told of: who is believed, for how long, and who is chosen."""

from __future__ import annotations

from pathlib import Path

from triplewire.http.delivery.events import LatestEventIds
from triplewire.http.peers.load_balancing import OVERLOAD_LISTENERS, OVERLOAD_SECONDS, OverloadDetector
from triplewire.http.peers.repeaters import REPEATER_LOOK_SECONDS, REPEATER_SECONDS, REPEATERS, Repeater, Repeaters
from triplewire.model.clock import ManualClock
from triplewire.storage.memory import MemoryLog, PositionSequence
from triplewire.testing import publication


def repeater(clock: ManualClock, id: str, load: float = 0.0, free: int = 100, stream: str = "s") -> Repeater:
    return Repeater(id, {stream: f"http://{id}/streams/{stream}"}, load, free, clock.now())


def test_the_one_with_most_room_is_chosen_and_counted() -> None:
    clock = ManualClock()
    known = Repeaters(clock)
    known.announce(repeater(clock, "busy", 0.5, 10))
    known.announce(repeater(clock, "idle", 0.3, 10))
    known.announce(repeater(clock, "full", 0.95, 10))
    known.announce(repeater(clock, "seatless", 0.0, 0))
    assert [known.find("s") for _ in range(9)] == ["http://idle/streams/s"] * 9
    sent = [known.assign("s") for _ in range(12)]
    assert sent[:2] == ["http://idle/streams/s"] * 2
    assert "http://busy/streams/s" in sent[2:4]
    assert {*sent[-1:]} == {None}
    known.announce(repeater(clock, "busy", 0.5, 10))
    assert known.assign("s") == "http://busy/streams/s"
    assert known.assign("other") is None


def test_nobody_is_believed_for_long() -> None:
    clock = ManualClock()
    known = Repeaters(clock)
    known.announce(repeater(clock, "a"))
    clock.advance(REPEATER_SECONDS - 1)
    known.announce(repeater(clock, "b"))
    assert [each.id for each in known.all()] == ["a", "b"]
    clock.advance(2)
    assert [each.id for each in known.all()] == ["b"]
    known.withdraw("b")
    assert known.all() == []


def test_more_than_a_limit_are_not_listened_to() -> None:
    clock = ManualClock()
    known = Repeaters(clock)
    for number in range(REPEATERS + 5):
        known.announce(repeater(clock, f"r{number}"))
    assert len(known.all()) == REPEATERS


def test_edges_over_one_directory_share_what_they_were_told(tmp_path: Path) -> None:
    clock = ManualClock()
    one, other = Repeaters(clock, tmp_path), Repeaters(clock, tmp_path)
    assert other.all() == []
    one.announce(repeater(clock, "a", 0.5))
    (tmp_path / "stranger.json").write_text("{}")
    clock.advance(REPEATER_LOOK_SECONDS)
    assert other.all() == one.all()
    one.withdraw("a")
    clock.advance(REPEATER_SECONDS + 1)
    assert other.all() == []


def test_a_peak_is_no_reason() -> None:
    clock, work, seats = ManualClock(), [0.9], [0.1]
    pressure = OverloadDetector(lambda: seats[0], lambda: work[0], clock.ticks)
    assert not pressure.is_overloaded()
    clock.advance(OVERLOAD_SECONDS - 1)
    assert not pressure.is_overloaded()
    work[0] = 0.1
    assert not pressure.is_overloaded()
    work[0] = 0.9
    clock.advance(OVERLOAD_SECONDS)
    assert not pressure.is_overloaded()
    clock.advance(OVERLOAD_SECONDS)
    assert pressure.is_overloaded()
    assert pressure.load == 0.9
    work[0], seats[0] = 0.0, OVERLOAD_LISTENERS
    assert pressure.is_overloaded()


def test_the_latest_event_of_each_stream_is_known_while_it_is_wanted() -> None:
    log = MemoryLog(PositionSequence(), ManualClock())
    log.append([publication(1, 2, stream="a"), publication(3, stream="b")])
    latest, table = LatestEventIds(), log.read(0, 9, 9)
    latest.note(table)
    assert latest.get("a") is None
    latest.enable(True)
    latest.note(table)
    assert (latest.get("a"), latest.get("b")) == ("http://example.org/event/2", "http://example.org/event/3")
    latest.enable(False)
    latest.enable(True)
    assert latest.get("a") is None
