"""What is told, in chosen cases: each says what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pytest

from tests.continuous.windows.brute import SECOND, Published
from tests.continuous.windows.worlds import BASE, EX, PREFIX, entries, registered
from triplewire.continuous.state import BatchContext
from triplewire.continuous.windows.evaluation import WindowLimits
from triplewire.continuous.windows.partition import WindowPartition
from triplewire.continuous.windows.results import results_to_events, suspended_queries
from triplewire.continuous.windows.watermarks import WINDOW_GRACE_SECONDS
from triplewire.continuous.windows.windowed_query import WINDOWS_REPORTED
from triplewire.model.events import OpaquePayload
from triplewire.model.subscriptions import ContinuousQuery, LatePolicy, QueryState, TimeDomain
from triplewire.model.terms import XSD
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY

VALUES = "SELECT ?v {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}"
COUNT = "SELECT (COUNT(*) AS ?n) {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}"


def asked(pattern: str, extent: str, report: str = "RSTREAM", id: str = "q", **more: Any) -> ContinuousQuery:  # noqa: ANN401
    text = pattern.format(windows=f"FROM NAMED WINDOW <urn:w> ON <a> [{extent}]")
    more = {"created": BASE, **more}
    return ContinuousQuery(id=id, text=f"{PREFIX}REGISTER {report} <out> AS {text}", into="out", **more)


def value(position: int, seconds: float, number: int = 0, time: float | None = None) -> Published:
    """An event of one triple: a thing of that position has the value of a number, or of the position."""
    triple = f'<{EX}s{position}>\t<{EX}v>\t"{number or position}"^^<{XSD}integer>'
    at = BASE + int(seconds * SECOND)
    return Published(position, "a", (triple,), at if time is None else BASE + int(time * SECOND), at)


class Course:
    """A place, and turns at given seconds."""

    def __init__(self, *queries: ContinuousQuery, limits: WindowLimits | None = None) -> None:
        self.partition, self.batch, self.position = WindowPartition(limits=limits), 0, 0
        self.partition.apply_changes(map(registered, queries))

    def turn(self, seconds: float, *events: Published) -> pa.Table:
        self.position = max([self.position, *(each.position for each in events)])
        turn = BatchContext(self.batch, self.position, BASE + int(seconds * SECOND))
        self.batch += 1
        return self.partition.process(entries(events), turn)

    def told(self, seconds: float, *events: Published) -> list[tuple[float, list[int]]]:
        """When windows closed, in seconds, and the numbers that were told."""
        return [((row["end"] - BASE) / SECOND, numbers(row)) for row in self.turn(seconds, *events).to_pylist()]


def numbers(row: dict[str, Any]) -> list[int]:
    bindings = orjson.loads(row["payload"])["results"]["bindings"]
    return [int(term["value"]) for solution in bindings for term in solution.values()]


def test_a_quiet_stream_closes_its_windows_and_an_empty_answer_is_not_told() -> None:
    course = Course(asked(VALUES, "RANGE PT4S STEP PT2S"))
    assert course.told(1, value(1, 1)) == []
    assert course.told(5) == [(2.0, [1]), (4.0, [1])]
    assert course.told(9) == []
    assert course.partition.due(BASE + 9 * SECOND) == BASE + 10 * SECOND + int(WINDOW_GRACE_SECONDS * SECOND)


def test_a_window_closes_after_its_grace_and_not_before() -> None:
    course = Course(asked(VALUES, "RANGE PT2S"))
    assert course.told(1, value(1, 1)) == []
    assert course.told(2) == []
    assert course.told(2 + WINDOW_GRACE_SECONDS) == [(2.0, [1])]


def test_counts_of_nothing_are_told_for_every_window_but_differences_once() -> None:
    course = Course(asked(COUNT, "RANGE PT2S", id="all"), asked(COUNT, "RANGE PT2S", "ISTREAM", id="new"))
    rows = [row for second in range(0, 9, 3) for row in course.turn(second).to_pylist()]
    assert [row["end"] for row in rows if row["query"] == "all"] == [BASE + each * SECOND for each in (2, 4)]
    assert [row["end"] for row in rows if row["query"] == "new"] == [BASE + 2 * SECOND]


def test_after_a_long_pause_the_newest_of_equal_windows_are_told_and_all_that_changed() -> None:
    course = Course(asked(COUNT, "RANGE PT1S"))
    course.turn(0.5, value(1, 0.5))
    told = course.told(100_000)
    assert told[0] == (1.0, [1])
    assert len(told) == WINDOWS_REPORTED
    # The first, then one that has nothing any more, then the newest of those that have nothing either.
    assert told[1] == (2.0, [0])
    assert told[-1] == (99_999.0, [0])
    assert course.told(100_001) == [(100_000.0, [0])]


def test_what_is_too_much_for_one_turn_comes_in_the_next() -> None:
    course = Course(asked(VALUES, "RANGE TRIPLES 1"))
    events = [value(1 + each, 1 + each / 1_000) for each in range(WINDOWS_REPORTED + 5)]
    first, second = course.told(2, *events), course.told(2.1)
    assert [each for _, told in (*first, *second) for each in told] == [each.position for each in events]
    assert len(first) == WINDOWS_REPORTED
    assert course.partition.due(BASE + 2 * SECOND) is None


def test_windows_of_triples_close_with_the_event_that_fills_them() -> None:
    course = Course(asked(VALUES, "RANGE TRIPLES 3 STEP 2"))
    pair = Published(2, "a", (*value(2, 1).triples, *value(20, 1).triples), BASE + SECOND, BASE + SECOND)
    rows = course.turn(1, value(1, 1), pair, value(3, 1), value(4, 1)).to_pylist()
    assert [(row["at"], sorted(numbers(row))) for row in rows] == [(2, [1, 2, 20]), (3, [2, 3, 20])]
    assert len({row["event"] for row in rows}) == 2


def test_a_session_is_told_when_nothing_came_for_its_gap() -> None:
    course = Course(asked(VALUES, "SESSION PT2S"))
    assert course.told(2, value(1, 1), value(2, 2)) == []
    assert course.told(5) == [(4.0, [1, 2])]
    (row,) = course.turn(9, value(3, 5)).to_pylist()
    assert (row["start"], row["end"]) == (BASE + 5 * SECOND, BASE + 7 * SECOND)


def test_late_events_are_dropped_and_counted_unless_a_window_is_left_for_them() -> None:
    course = Course(asked(VALUES, "RANGE PT4S STEP PT2S", time=TimeDomain.EVENT))
    assert course.told(6, value(1, 6, time=0.5), value(2, 6, time=5)) == [(2.0, [1]), (4.0, [1])]
    assert course.told(6.1, value(3, 6.1, time=0.7), value(4, 6.1, time=3)) == []
    assert course.partition.figures.dropped == {"q": 1}
    assert course.told(6.2, value(5, 6.2, time=6)) == [(6.0, [2, 4])]


def test_windows_are_told_again_with_what_came_late_as_long_as_they_are_kept() -> None:
    course = Course(asked(VALUES, "RANGE PT2S", time=TimeDomain.EVENT, late=LatePolicy.REVISE))
    assert course.told(3, value(1, 3, time=1), value(2, 3, time=3)) == [(2.0, [1])]
    (row,) = course.turn(3.5, value(3, 3.5, time=1.5)).to_pylist()
    assert (row["end"], row["revision"], numbers(row)) == (BASE + 2 * SECOND, 1, [1, 3])
    assert row["event"].endswith(":1")
    assert course.told(4.5, value(4, 4.5, time=4)) == [(4.0, [2])]
    assert course.told(5, value(5, 5, time=1.7)) == []
    assert course.partition.figures.dropped == {"q": 1}


def test_a_revision_may_say_that_nothing_is_left() -> None:
    alone = "WINDOW <urn:w> {{ ?s :v ?v FILTER NOT EXISTS {{ ?t :v 9 }} }}"
    lonely = f"CONSTRUCT {{{{ ?s :is :lonely }}}} {{windows}} WHERE {{{{ {alone} }}}}"
    course = Course(asked(lonely, "RANGE PT2S", time=TimeDomain.EVENT, late=LatePolicy.REVISE))
    first = course.turn(3, value(1, 3, time=1), value(2, 3, time=3))
    assert first["payload"].to_pylist() == [f"<{EX}s1> <{EX}is> <{EX}lonely> .\n"]
    again = course.turn(3.5, value(3, 3.5, number=9, time=1.5))
    assert again["payload"].to_pylist() == [""]
    ((stream, event),) = results_to_events(again)
    assert (stream, event.headers.extensions["revision"]) == ("out", "1")
    assert event.text == OpaquePayload("application/n-triples", b"").text(event.id)


def test_by_arrival_a_clock_that_is_set_back_moves_events_on_and_drops_none() -> None:
    course = Course(asked(VALUES, "RANGE PT2S"))
    assert course.told(3, value(1, 1), value(2, 3)) == [(2.0, [1])]
    assert course.told(4.9, value(3, 0.5)) == [(4.0, [2, 3])]
    assert course.partition.figures.dropped == {"q": 0}


def test_only_events_after_the_registration_count() -> None:
    course = Course(asked(VALUES, "RANGE PT2S", since=2))
    assert course.told(3, value(1, 1), value(3, 1)) == [(2.0, [3])]


def test_queries_of_one_text_are_each_told_and_one_that_ends_no_more() -> None:
    course = Course(asked(VALUES, "RANGE PT2S", id="one"), asked(VALUES, "RANGE PT2S", id="two"))
    assert course.turn(3, value(1, 1))["query"].to_pylist() == ["one", "two"]
    course.partition.apply_changes([RegistryChange(5, QUERY, "one", None)])
    assert course.turn(6, value(6, 3))["query"].to_pylist() == ["two"]
    assert [*course.partition.figures.held] == ["two"]
    course.partition.apply_changes(
        [RegistryChange(7, QUERY, "two", {"text": "", "state": QueryState.SUSPENDED, "first": 0})]
    )
    assert course.turn(9, value(8, 7)).num_rows == 0
    assert course.partition.streams == frozenset()


def test_what_is_learned_again_does_not_begin_again() -> None:
    query = asked(COUNT, "RANGE PT4S")
    course = Course(query)
    course.turn(1, value(1, 1))
    course.partition.apply_changes([registered(query)])
    assert course.told(5, value(2, 2)) == [(4.0, [2])]


def test_a_query_that_is_learned_before_its_time_waits_for_it() -> None:
    course = Course(asked(COUNT, "RANGE PT1S", "ISTREAM", since=5, created=BASE + 4 * SECOND))
    assert course.told(3, value(1, 1), value(2, 2)) == []
    assert course.told(6, value(6, 5.5)) == [(5.0, [0])]


def test_a_new_query_reads_columns_that_no_one_read_before() -> None:
    from_whom = "GRAPH ?g {{ ?s :v ?v }} ?g <https://triplewire.dev/ns#source> ?t"
    heads = f"SELECT ?t {{windows}} WHERE {{{{ WINDOW <urn:w> {{{{ {from_whom} }}}} }}}}"
    course = Course(asked(VALUES, "RANGE PT2S"))
    course.turn(1, value(1, 1))
    course.partition.apply_changes([registered(asked(heads, "RANGE PT2S", id="r", since=2))])
    sourced = entries([value(3, 1.5)])
    sourced = sourced.set_column(sourced.schema.get_field_index("source"), "source", pa.array(["me"]))
    rows = course.partition.process(sourced, BatchContext(9, 3, BASE + 3 * SECOND)).to_pylist()
    found = {row["query"]: orjson.loads(row["payload"])["results"]["bindings"] for row in rows}
    assert [each["t"]["value"] for each in found["r"]] == ["me"]
    assert len(found["q"]) == 2


def test_now_is_when_the_window_closed() -> None:
    course = Course(
        asked("SELECT (NOW() AS ?t) {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}", "RANGE PT4S STEP PT2S")
    )
    rows = course.turn(5, value(1, 1)).to_pylist()
    times = [orjson.loads(row["payload"])["results"]["bindings"][0]["t"]["value"] for row in rows]
    assert times == ["2023-11-14T22:13:22Z", "2023-11-14T22:13:24Z"]


def test_cargoes_are_carried_and_not_read() -> None:
    course = Course(asked("SELECT ?o {windows} WHERE {{ WINDOW <urn:w> {{ ?s ?p ?o }} }}", "RANGE PT2S"))
    carried = Published(
        1, "a", tuple(OpaquePayload("text/plain", b"x").text(f"{EX}e1").split("\n")), BASE, BASE + SECOND
    )
    assert course.told(3, carried) == []


@pytest.mark.parametrize("report", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_blank_nodes_of_a_template_are_new_in_every_window_and_the_same_when_made_again(report: str) -> None:
    made = "CONSTRUCT {{ [] :saw ?v }} {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}"
    query = asked(made, "RANGE PT4S STEP PT2S", report)
    first, again = Course(query), Course(query)
    events = [value(1, 1), value(2, 3)]
    rows = first.turn(7, *events).to_pylist()
    assert rows == again.turn(7, *events).to_pylist()
    lines = [[line.split(" ") for line in row["payload"].splitlines()] for row in rows]
    nodes = [node for window in lines for node, *_ in window]
    assert len(set(nodes)) == len(nodes)
    assert all(node.startswith("<urn:triplewire:genid:") for node in nodes)
    expected = {"RSTREAM": [["1"], ["1", "2"], ["2"]], "ISTREAM": [["1"], ["2"]], "DSTREAM": [["1"]]}
    assert [[each[2].split('"')[1] for each in window] for window in lines] == expected[report]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (WindowLimits(triples=5), "triples"),
        (WindowLimits(rows=2), "solutions"),
        (WindowLimits(built=1), "builds"),
    ],
)
def test_a_query_over_a_limit_is_suspended_and_the_others_go_on(limits: WindowLimits, reason: str) -> None:
    everything = "CONSTRUCT {{ ?s :saw ?v }} {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}"
    large, small = asked(everything, "RANGE PT10S", id="large"), asked(COUNT, "RANGE PT1S", id="small")
    course = Course(large, small, limits=limits)
    course.turn(1, value(1, 0.5))
    rows = [row for second in range(2, 14) for row in course.turn(second, value(second, second)).to_pylist()]
    (over,) = [row for row in rows if row["query"] == "large"]
    assert over["kind"] == "suspended"
    assert reason in orjson.loads(over["payload"])["detail"]
    assert [row["end"] for row in rows if row["query"] == "small"] == [BASE + each * SECOND for each in range(1, 14)]
    assert [*course.partition.figures.held] == ["small"]
    found = pa.Table.from_pylist([over], schema=course.turn(20).schema)
    assert suspended_queries(found) == {"large": orjson.loads(over["payload"])["detail"]}
    ((stream, event),) = results_to_events(found)
    assert (stream, event.id) == ("out", "urn:triplewire:answer:large:suspended")
    course.partition.apply_changes([registered(asked(everything, "RANGE PT10S", id="large"))])
    assert [*course.partition.figures.held] == ["small"]


def test_a_query_that_takes_too_long_is_suspended() -> None:
    pairs = (
        "SELECT (COUNT(*) AS ?n) {windows} WHERE {{ WINDOW <urn:w> {{ ?a :v ?x . ?b :v ?y . ?c :v ?z . ?d :v ?q }} }}"
    )
    course = Course(asked(pairs, "RANGE PT2S"), limits=WindowLimits(cpu_seconds=0.2))
    ((row),) = course.turn(3, *(value(1 + each, 1) for each in range(300))).to_pylist()
    assert "CPU" in orjson.loads(row["payload"])["detail"]


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("SELECT (RAND() AS ?r) {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}", "RAND is not supported"),
        ("SELECT ?v {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} ?s :in ?r }}", "put every pattern into a WINDOW"),
    ],
)
def test_what_cannot_be_asked_is_suspended_at_once(pattern: str, reason: str) -> None:
    course = Course(asked(pattern, "RANGE PT2S"))
    (row,) = course.turn(1).to_pylist()
    assert reason in orjson.loads(row["payload"])["detail"]
    assert course.turn(2).num_rows == 0


def test_an_answer_is_an_event_that_names_its_query_and_window() -> None:
    course = Course(asked(VALUES, "RANGE PT2S", id="a/b"))
    ((stream, event),) = results_to_events(course.turn(3, value(1, 1)))
    assert stream == "out"
    assert event.id == f"urn:triplewire:answer:a%2Fb:{BASE + 2 * SECOND}:0:0"
    assert event.headers.time == BASE + 2 * SECOND
    assert event.headers.extensions == {
        "query": "a/b",
        "window-start": "2023-11-14T22:13:20Z",
        "window-end": "2023-11-14T22:13:22Z",
        "report": "rstream",
    }
    assert event.text.startswith(f"<{event.id}>\t")
    document = orjson.loads(body(event.text))
    assert document["head"] == {"vars": ["v"]}
    assert [each["v"]["value"] for each in document["results"]["bindings"]] == ["1"]
    window = {"name": "urn:w", "stream": "a", "start": "2023-11-14T22:13:20Z", "end": "2023-11-14T22:13:22Z"}
    assert document["windows"] == [window]


def body(text: str) -> str:
    last: str = orjson.loads(text.split("\n")[1].split("\t", 2)[2])
    return last


def test_a_graph_is_an_event_of_triples_whatever_its_literals_hold() -> None:
    made = "CONSTRUCT {{ ?s :saw ?v }} {windows} WHERE {{ WINDOW <urn:w> {{ ?s :v ?v }} }}"
    course = Course(asked(made, "RANGE PT2S"))
    line = f'<{EX}s>\t<{EX}v>\t"a b\u2028c \\n . "@en'
    ((_, event),) = results_to_events(course.turn(3, Published(1, "a", (line,), BASE, BASE + SECOND)))
    assert event.text == line.replace("/v>", "/saw>")


def rows_of(results: Sequence[pa.Table]) -> list[dict[str, Any]]:
    return [row for each in results for row in each.to_pylist()]


def test_contents_are_forgotten_as_windows_pass() -> None:
    queries = asked(COUNT, "RANGE PT4S STEP PT1S"), asked(COUNT, "RANGE TRIPLES 7 STEP 3", id="r")
    course = Course(*queries, limits=WindowLimits(slack_triples=20))
    most, told = 0, []
    for second in range(1, 120):
        told += rows_of([course.turn(second, *(value(10 * second + each, second) for each in range(5)))])
        most = max(most, course.partition.figures.rows)
    assert most <= 50
    assert {row["end"]: numbers(row) for row in told if row["query"] == "q"}[BASE + 100 * SECOND] == [20]
    assert course.partition.figures.held["r"] <= 9
