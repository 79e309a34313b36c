"""Ids that the broker gives are new, and in the order of time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

from triplewire.model.clock import ManualClock
from triplewire.rdf.terms import IdGenerator, check_id, id_milliseconds, new_id

NOW = 1_700_000_000_123_456


def test_an_id_is_a_uuid_of_version_7_that_begins_with_the_millisecond() -> None:
    made = IdGenerator(ManualClock(NOW)).new()
    number = UUID(check_id(made))
    assert (number.version, number.variant) == (7, RFC_4122)
    assert number.int >> 80 == NOW // 1_000 == int(id_milliseconds(made), 16)


def test_ids_sort_as_they_were_made_though_the_clock_stands_still_or_is_set_back() -> None:
    clock = ManualClock(NOW)
    ids = IdGenerator(clock)
    made = [ids.new() for _ in range(10_000)]
    clock.jump(-5_000_000)
    made += [ids.new() for _ in range(10)]
    clock.jump(60_000_000)
    made += [ids.new() for _ in range(10)]
    assert made == sorted(set(made))
    assert int(id_milliseconds(made[-1]), 16) == (NOW + 55_000_000) // 1_000


def test_two_processes_that_ask_at_once_get_different_ids() -> None:
    assert IdGenerator(ManualClock(NOW)).new() != IdGenerator(ManualClock(NOW)).new()


def test_threads_get_different_ids() -> None:
    with ThreadPoolExecutor(4) as threads:
        made = [*threads.map(lambda _: new_id(), range(2_000))]
    assert len({UUID(each).int >> 62 for each in made}) == len(made)


def test_other_ids_tell_no_time() -> None:
    assert (
        id_milliseconds("urn:uuid:793cf14d-c69e-419c-b12f-85575b16208d")
        == id_milliseconds("http://example.org/event/1")
        == ""
    )
