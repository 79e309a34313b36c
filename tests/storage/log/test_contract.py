"""What every twin of the log must do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from triplewire.model import END, ENTRIES, Erasure, ErasureScope, Event, EventHeaders
from triplewire.storage.log.ports import AppendResult, LogRetention, Publication
from triplewire.storage.log.sqlite import TRIM_EVENTS
from triplewire.testing import TWIN_KINDS, Twin, event, open_twin, publication

HOUR = 3600.0


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def ids(stores: Twin, after: int = 0, through: int = END, limit: int = 1_000) -> list[str]:
    found: list[str] = stores.log.read(after, through, limit).column("event").to_pylist()
    return [address.rpartition("/")[2] for address in found]


def positions(stores: Twin) -> list[int]:
    found: list[int] = stores.log.read(0, END, 1_000).column("position").to_pylist()
    return found


def test_an_empty_log_has_its_head_at_the_start_and_reads_as_an_empty_table(stores: Twin) -> None:
    assert stores.log.head() == 0
    table = stores.log.read(0, END, 10)
    assert (table.schema, table.num_rows) == (ENTRIES, 0)


def test_each_publication_gets_its_own_range_in_one_order(stores: Twin) -> None:
    assert stores.log.append([publication(1, 2), publication(3, stream="other")]) == [range(1, 3), range(3, 4)]
    assert stores.log.append([publication(4)]) == [range(4, 5)]
    assert stores.log.head() == 4
    assert ids(stores) == ["1", "2", "3", "4"]


def test_a_publication_without_events_takes_no_position(stores: Twin) -> None:
    taken = stores.log.append([publication(), publication(1), publication()])
    assert [len(each) for each in taken] == [0, 1, 0]
    assert [len(each) for each in stores.log.append([publication()])] == [0]
    assert stores.log.append([]) == []
    assert stores.log.head() == 1


def test_everything_about_an_event_comes_back(stores: Twin) -> None:
    headers = EventHeaders("urn:source", "urn:app", 42, "text/turtle", {"X-Über": "ß", "x-b": '"'})
    stores.log.append([Publication("city", [Event("urn:é", '<urn:s>\t<urn:p>\t"ü\\n"', headers), event(2)])])
    table = stores.log.read(0, END, 10)
    assert table.schema == ENTRIES
    table.validate(full=True)
    first, second = table.to_pylist()
    assert first == {
        "position": 1,
        "stream": "city",
        "event": "urn:é",
        "text": '<urn:s>\t<urn:p>\t"ü\\n"',
        "source": "urn:source",
        "application": "urn:app",
        "time": 42,
        "received": stores.clock.now(),
        "syntax": "text/turtle",
        "extensions": '{"X-Über":"ß","x-b":"\\""}',
    }
    absent = {name: second[name] for name in ("source", "application", "extensions")}
    assert absent == {"source": None, "application": None, "extensions": None}
    assert second["time"] == second["received"]


@pytest.mark.parametrize(
    ("after", "upto", "limit", "found"),
    [
        (0, 3, 9, ["1", "2", "3"]),
        (1, 3, 9, ["2", "3"]),
        (1, 2, 9, ["2"]),
        (0, END, 2, ["1", "2"]),
        (2, 2, 9, []),
        (3, 1, 9, []),
        (9, END, 9, []),
        (0, END, 0, []),
    ],
)
def test_reading_is_open_below_and_closed_above(
    stores: Twin, after: int, upto: int, limit: int, found: list[str]
) -> None:
    stores.log.append([publication(1, 2, 3)])
    assert ids(stores, after, upto, limit) == found


def test_entries_finds_given_positions_in_order_and_once(stores: Twin) -> None:
    stores.log.append([publication(*range(1, 8))])
    stores.log.trim(LogRetention(size=0), before=2)
    found = stores.log.entries([7, 1, 3, 3, 99])
    assert found.column("position").to_pylist() == [3, 7]
    assert found.schema == ENTRIES
    assert stores.log.entries([]).num_rows == 0


def test_registry_changes_take_positions_of_the_same_order(stores: Twin) -> None:
    stores.log.append([publication(1)])
    assert stores.registry.put([("stream", "test", {}), ("stream", "other", {})]) == [2, 3]
    assert stores.log.head() == 3
    assert stores.log.append([publication(2)]) == [range(4, 5)]
    assert positions(stores) == [1, 4]


def test_trim_by_age_drops_what_is_older(stores: Twin) -> None:
    stores.log.append([publication(1, 2)])
    stores.clock.advance(HOUR)
    stores.log.append([publication(3)])
    assert stores.log.trim(LogRetention(age=HOUR), END) == 0
    stores.clock.advance(1)
    assert stores.log.trim(LogRetention(age=HOUR), END) == 2
    assert ids(stores) == ["3"]


def test_trim_by_size_keeps_the_newest_whole_events_that_fit(stores: Twin) -> None:
    texts = ["a" * 10, "ü" * 5, "b" * 10, "c" * 10]
    stores.log.append([Publication("s", [Event(f"urn:/{n}", text) for n, text in enumerate(texts)])])
    assert stores.log.trim(LogRetention(size=40), END) == 0
    assert stores.log.trim(LogRetention(size=39), END) == 1
    assert stores.log.trim(LogRetention(size=20), END) == 1
    assert ids(stores) == ["2", "3"]
    assert stores.log.trim(LogRetention(size=0), END) == 2


def test_extensions_count_as_size(stores: Twin) -> None:
    """Of 15 bytes as JSON."""
    events = [Event(f"urn:{n}", "0123456789", EventHeaders(extensions={"X-A": "12345"[n:]})) for n in (0, 1)]
    stores.log.append([Publication("s", events)])
    assert [stores.log.page_end(0, 2, size) for size in (24, 25, 26)] == [1, 1, 2]
    assert stores.log.trim(LogRetention(size=49), END) == 0
    assert stores.log.trim(LogRetention(size=48), END) == 1


def test_size_is_counted_across_trims_and_appends(stores: Twin) -> None:
    for number in range(6):
        stores.log.append([Publication("s", [Event(f"urn:/{number}", "x" * 10)])])
        stores.log.trim(LogRetention(size=30), END)
    assert ids(stores) == ["3", "4", "5"]


def test_trim_never_reaches_what_is_still_needed(stores: Twin) -> None:
    stores.log.append([publication(1, 2, 3)])
    stores.clock.advance(HOUR)
    assert stores.log.trim(LogRetention(age=1, size=0), before=3) == 2
    assert ids(stores) == ["3"]


def test_an_event_is_found_by_its_id_in_its_stream_or_in_any(stores: Twin) -> None:
    stores.log.append([publication(1, 2, stream="a"), publication(1, stream="b"), publication(3, stream="a")])
    assert [stores.log.find(event(1).id, each) for each in ("a", "b", "c", None)] == [1, 3, None, 3]
    assert stores.log.find(event(9).id) is None


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_an_event_is_found_among_the_newest_positions_alone(kind: str) -> None:
    with open_twin(kind, lookup=3) as stores:
        stores.log.append([publication(1, 2, stream="a"), publication(1, stream="b"), publication(3, stream="a")])
        assert [stores.log.find(event(1).id, each) for each in ("a", "b")] == [None, 3]


def test_the_newest_that_a_stream_lost_by_a_trim_is_known(stores: Twin) -> None:
    stores.log.append([publication(1, stream="a"), publication(2, 3, stream="b"), publication(4, stream="a")])
    assert [stores.log.floor(each) for each in ("a", "b", "c", None)] == [0, 0, 0, 0]
    stores.log.trim(LogRetention(size=0), before=3)
    assert [stores.log.floor(each) for each in ("a", "b", "c", None)] == [1, 2, 0, 2]
    stores.log.trim(LogRetention(size=0), END)
    assert [stores.log.floor(each) for each in ("a", "b", "c", None)] == [4, 3, 0, 4]


def test_a_trim_of_many_steps_drops_all_that_goes_and_no_more(stores: Twin) -> None:
    count = 2 * TRIM_EVENTS + 10
    stores.log.append([Publication("s", [Event(f"urn:/{number}", "x") for number in range(count)])])
    assert stores.log.trim(LogRetention(size=3), END) == count - 3
    assert positions(stores) == [count - 2, count - 1, count]


def test_without_a_limit_nothing_is_dropped(stores: Twin) -> None:
    stores.log.append([publication(1)])
    stores.clock.advance(1_000 * HOUR)
    assert stores.log.trim(LogRetention(), END) == 0


def test_positions_go_on_after_everything_was_trimmed(stores: Twin) -> None:
    stores.log.append([publication(1, 2)])
    stores.log.trim(LogRetention(size=0), END)
    assert stores.log.head() == 2
    assert stores.log.append([publication(3)]) == [range(3, 4)]


def test_a_wall_clock_that_jumps_back_does_not_disturb_the_order(stores: Twin) -> None:
    stores.log.append([publication(1)])
    stores.clock.jump(-10 * 3_600_000_000)
    assert stores.log.append([publication(2)]) == [range(2, 3)]
    received = stores.log.read(0, END, 9).column("received").to_pylist()
    assert ids(stores) == ["1", "2"]
    assert received[0] > received[1]


def test_an_old_entry_behind_a_younger_one_waits_for_it(stores: Twin) -> None:
    """A clock that was ahead for a while must not make the log drop its middle."""
    stores.log.append([publication(1)])
    stores.clock.jump(-10 * 3_600_000_000)
    stores.log.append([publication(2)])
    stores.clock.advance(2 * HOUR)
    assert stores.log.trim(LogRetention(age=HOUR), END) == 0
    stores.clock.advance(10 * HOUR)
    assert stores.log.trim(LogRetention(age=HOUR), END) == 2


def test_threads_that_append_at_once_get_positions_of_their_own(stores: Twin) -> None:
    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(lambda n: (n, stores.log.append([publication(n, n)])[0]), range(40)))
    assert sorted(at for _, each in taken for at in each) == list(range(1, 81))
    stored = ids(stores)
    assert all(stored[at - 1] == str(number) for number, each in taken for at in each)


def test_how_far_some_bytes_reach(stores: Twin) -> None:
    """The registry takes positions between those of entries."""
    put = stores.registry.put
    put([("a", "b", {})])
    for length in (10, 20, 30):
        stores.log.append([Publication("test", [Event("urn:e", "x" * length)])])
        put([("a", "b", {})])
    head = stores.log.head()
    found = [stores.log.page_end(0, head, size) for size in (0, 1, 10, 11, 29, 30, 31, 1_000)]
    assert found == [3, 3, 3, 5, 5, 5, head, head]
    assert [stores.log.page_end(after, head, 1) for after in range(head + 1)] == [3, 3, 5, 5, 7, 7, 7, 7]
    assert stores.log.page_end(1, 4, 1_000) == 4


def keyed(key: str | None, *numbers: int) -> Publication:
    return Publication("test", [event(number) for number in numbers], key)


def test_a_key_that_comes_again_stores_nothing_and_gets_the_same_range(stores: Twin) -> None:
    assert stores.log.append([keyed("a", 1, 2), keyed("b", 3)]) == [range(1, 3), range(3, 4)]
    again = [keyed(None, 4), keyed("b", 3), keyed("c", 5), keyed("a", 1, 2), keyed("c", 5), keyed(None, 4)]
    assert stores.log.append(again) == [range(4, 5), range(3, 4), range(5, 6), range(1, 3), range(5, 6), range(6, 7)]
    assert stores.log.append([keyed("c", 5)]) == [range(5, 6)]
    assert ids(stores) == ["1", "2", "3", "4", "5", "4"]
    assert stores.log.head() == 6


def test_a_key_is_known_for_as_long_as_its_last_event_is_kept(stores: Twin) -> None:
    stores.log.append([keyed("a", 1, 2)])
    stores.log.append([keyed("b", 3)])
    stores.log.trim(LogRetention(size=0), before=2)
    assert stores.log.append([keyed("a", 1, 2)]) == [range(1, 3)]
    stores.log.trim(LogRetention(size=0), before=3)
    assert stores.log.append([keyed("b", 3), keyed("a", 1, 2)]) == [range(3, 4), range(4, 6)]


def test_one_of_many_that_bring_the_same_key_stores_it(stores: Twin) -> None:
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda n: stores.log.append([keyed(str(n % 3), n)])[0], range(30)))
    assert len(set(taken)) == stores.log.head() == 3


def test_events_of_one_publication_may_be_of_several_streams(stores: Twin) -> None:
    assert stores.log.append([Publication(["b", "a", "b"], [event(1), event(2), event(3)])]) == [range(1, 4)]
    assert stores.log.read(0, END, 10).column("stream").to_pylist() == ["b", "a", "b"]


def given(*numbers: int, stream: str = "test", value: float | None = None, key: str | None = None) -> Publication:
    """Events whose ids their publisher gave."""
    events = [event(number, value) for number in numbers]
    return Publication(stream, events, key, frozenset(each.id for each in events))


def told(answers: list[Sequence[int]]) -> list[tuple[list[int], int, list[int]]]:
    """Positions, how many were there before, and where others of the same id are."""
    return [
        (list(each), each.repeated, list(each.others.values()))
        if isinstance(each, AppendResult)
        else (list(each), 0, [])
        for each in answers
    ]


def test_an_event_whose_id_was_given_is_stored_once_in_its_stream(stores: Twin) -> None:
    assert stores.log.append([given(1, 2)]) == [range(1, 3)]
    assert told(stores.log.append([given(2)])) == [([2], 1, [])]
    assert told(stores.log.append([given(3, 1, 4)])) == [([3, 1, 4], 1, [])]
    assert told(stores.log.append([given(1, stream="other")])) == [([5], 0, [])]
    assert ids(stores) == ["1", "2", "3", "4", "1"]
    assert stores.log.head() == 5


def test_events_of_one_transaction_are_known_to_each_other(stores: Twin) -> None:
    answers = stores.log.append([given(1), given(1, 2), publication(1), given(2, value=7.0), given(3, 3), given(2)])
    assert told(answers) == [([1], 0, []), ([1, 2], 1, []), ([3], 0, []), ([2], 0, [2]), ([4, 4], 1, []), ([2], 1, [])]
    assert ids(stores) == ["1", "2", "1", "3"]


def test_the_same_id_with_another_text_is_told_and_nothing_is_stored(stores: Twin) -> None:
    stores.log.append([given(1, 2)])
    answers = stores.log.append([given(3), given(4, 2, value=9.5), given(4)])
    assert told(answers) == [([3], 0, []), ([2], 0, [2]), ([4], 0, [])]
    assert ids(stores) == ["1", "2", "3", "4"]


def test_of_events_that_are_taken_apart_only_those_whose_ids_are_taken_are_not_stored(stores: Twin) -> None:
    stores.log.append([given(1, 2)])
    apart = replace(given(3, 1, 4, 2), apart=True)
    changed = replace(apart, events=[event(3), event(1, 9.5), event(4), event(2)])
    assert told(stores.log.append([changed, given(4)])) == [([3, 1, 4, 2], 1, [1]), ([4], 1, [])]
    assert ids(stores) == ["1", "2", "3", "4"]


def test_an_id_that_was_not_given_is_not_looked_for(stores: Twin) -> None:
    stores.log.append([publication(1)])
    assert stores.log.append([given(1)]) == [range(2, 3)]
    assert stores.log.append([publication(1)]) == [range(3, 4)]


def test_a_key_and_given_ids_together(stores: Twin) -> None:
    stores.log.append([given(1)])
    assert told(stores.log.append([given(1, 2, key="a")])) == [([1, 2], 1, [])]
    assert stores.log.append([given(1, 2, key="a"), given(3, key="b")]) == [range(2, 3), range(3, 4)]
    assert told(stores.log.append([given(1, key="c")])) == [([1], 1, [])]
    assert told(stores.log.append([given(1, key="c")])) == [([1], 1, [])]
    assert stores.log.head() == 3


def test_a_given_id_is_known_for_as_long_as_its_event_is_kept(stores: Twin) -> None:
    stores.log.append([given(1, 2)])
    stores.log.trim(LogRetention(size=0), before=2)
    assert told(stores.log.append([given(2, 1)])) == [([2, 3], 1, [])]
    stores.log.trim(LogRetention(size=0), before=3)
    assert told(stores.log.append([given(1, 2)])) == [([3, 4], 1, [])]


def test_what_was_erased_is_not_there_for_who_publishes_it_again(stores: Twin) -> None:
    stores.log.append([given(1, 2)])
    stores.log.erase(Erasure("x", ErasureScope.EVENT, event(1).id, stores.log.head() + 1))
    assert told(stores.log.append([given(1, 2)])) == [([3, 2], 1, [])]
    assert told(stores.log.append([given(1)])) == [([3], 1, [])]


def test_of_many_that_bring_the_same_ids_each_is_stored_once(stores: Twin) -> None:
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda n: stores.log.append([given(n % 4, n % 3)])[0], range(40)))
    assert {position for each in taken for position in each} == set(positions(stores))
    assert sorted(ids(stores)) == ["0", "1", "2", "3"]
