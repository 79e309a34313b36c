"""What `bench continuous` checks and tells: a wrong answer ends it, and figures are what they are called."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench import continuous_sliding as sliding
from bench.continuous import choose_aims, measure_loads, measure_spread
from bench.continuous_oracle import (
    AnswerRows,
    DeliveredAnswers,
    check_rows,
    check_sample,
    expect_rows,
    find_answers,
    find_groups,
)
from bench.continuous_sliding import WindowReport, check_reports
from bench.continuous_workloads import Conjunction
from bench.harness import SOSA, Disagreement
from tests.bench.test_continuous import SMALL, located
from triplewire.config import Settings
from triplewire.model import MATCHES
from triplewire.model.clock import SystemClock
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.storage.outbox import OutboxLane, SqliteOutbox
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.subscriptions import QUERY, query_to_value

AT = located(SMALL, 40)
GROUPS = {question: 100 + number for number, question in enumerate(dict.fromkeys(SMALL.questions))}


def matches() -> list[dict[str, object]]:
    """What an engine should tell, one answer a row."""
    found: list[dict[str, object]] = []
    for number, each in find_answers(SMALL, AT):
        columns = (each.constants.tolist(), each.newest.tolist(), each.oldest.tolist(), each.terms.tolist())
        for constants, newest, oldest, told in zip(*columns, strict=True):
            group = GROUPS[Conjunction(number, tuple(constants))]
            terms = ["0", *(SMALL.terms[code] for code in told)]
            found.append({"position": newest, "group": group, "value": float(oldest), "terms": terms})
    return found


def outcome(rows: list[dict[str, object]]) -> DeliveredAnswers:
    return DeliveredAnswers(pa.Table.from_pylist(rows, schema=MATCHES))


def test_what_is_right_agrees_in_any_order() -> None:
    told = outcome(matches()[::-1])
    right = expect_rows(SMALL, AT, GROUPS)
    check_rows(told.rows, right)
    checked = check_sample(SMALL, AT, GROUPS, told)
    assert checked["questions"] == len(GROUPS)
    assert checked["solutions"] == len(right)
    # Two questions are the same, and both are told.
    of_both = told.count([GROUPS[SMALL.questions[3]]])
    assert told.count(GROUPS[each] for each in SMALL.questions) == len(right) + of_both


def test_an_answer_that_is_missing_ends_the_run() -> None:
    with pytest.raises(Disagreement, match="answers were delivered"):
        check_rows(outcome(matches()[1:]).rows, expect_rows(SMALL, AT, GROUPS))


@pytest.mark.parametrize("field", ["position", "group", "value"])
def test_an_answer_in_the_wrong_place_ends_the_run(field: str) -> None:
    first, *others = matches()
    moved = {**first, field: first[field] + 1}  # type: ignore[operator]
    with pytest.raises(Disagreement, match="is right"):
        check_rows(outcome([moved, *others]).rows, expect_rows(SMALL, AT, GROUPS))


def test_a_wrong_term_ends_the_run() -> None:
    first, *others = matches()
    wrong = {**first, "terms": ["0", "<urn:t:3>", "<urn:t:77>"]}
    with pytest.raises(Disagreement, match="urn:t:77"):
        check_sample(SMALL, AT, GROUPS, outcome([wrong, *others]))


def test_answers_are_read_from_the_outbox_after_a_position(tmp_path: Path) -> None:
    outbox = SqliteOutbox(tmp_path / "outbox.db")
    rows = [{"position": at, "group": 5, "value": float(at), "terms": ["0", "<urn:a>"]} for at in (3, 7, 9)]
    outbox.write(0, 4, pa.Table.from_pylist(rows[:1], schema=MATCHES), OutboxLane.CONTINUOUS)
    outbox.write(1, 9, pa.Table.from_pylist(rows[1:], schema=MATCHES), OutboxLane.CONTINUOUS)
    found = DeliveredAnswers.read(outbox, 4)
    outbox.close()
    assert found.rows.newest.tolist() == [7, 9]
    assert found.of_group(5) == {(7, 7, ("<urn:a>",)): 1, (9, 9, ("<urn:a>",)): 1}


def test_questions_that_differ_may_not_share_a_group(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    assert find_groups(settings, SMALL, registered(settings, lambda number: GROUPS[SMALL.questions[number]])) == GROUPS
    with pytest.raises(Disagreement, match="of one group"):
        find_groups(settings, SMALL, registered(settings, lambda number: 1))
    with pytest.raises(Disagreement, match="is of group"):
        find_groups(settings, SMALL, registered(settings, lambda number: number))


def registered(settings: Settings, group: object) -> list[str]:
    registry = SqliteRegistry(settings.log, SystemClock())
    queries = [
        ContinuousQuery(id=f"q{number}", text="", group=group(number))  # type: ignore[operator]
        for number in range(len(SMALL.questions))
    ]
    registry.put([(QUERY, each.id, query_to_value(each)) for each in queries])
    registry.close()
    return [each.id for each in queries]


def test_spread_is_a_deviation_and_a_share() -> None:
    assert measure_spread([5, 5, 5, 5]) == {"count": 4, "rsd_percent": 0.0, "share_at_work": 1.0}
    assert measure_spread([8, 0, 0, 0]) == {"count": 4, "rsd_percent": 173.2, "share_at_work": 0.25}
    assert measure_spread([0, 0])["share_at_work"] == 0.0


def test_loads_are_those_of_the_run_alone() -> None:
    found = measure_loads("cqc", {"loads": [4, 0, 1]}, {"loads": [4, 0, 9], "addresses": 2_000})
    assert found["buckets"]["share_at_work"] == 0.3333
    assert found["addresses"] == {"of": 20_000, "at_work": 2_000, "share_at_work": 0.1, "paper_at_work": 2_685}


def test_aims_are_those_of_the_workload() -> None:
    report = {
        "workload": "windowed",
        "strategy": "csbv",
        "queries": 100_000,
        "triples_per_s": 21_000,
        "loads": {"buckets": {"share_at_work": 0.9}},
        "memory": {"times": 1.0},
        "growth": {"times": 1.5},
    }
    assert [aim.is_met(report) for aim in choose_aims(report)] == [True, False, True, True]
    assert len(choose_aims({**report, "workload": "paths", "queries": 1_000, "growth": None})) == 1
    assert choose_aims({**report, "workload": "structures", "strategy": "cqc", "growth": None}) == []
    late = {"workload": "sliding", "late_ms": {"max": 2_500}, "missing": 0}
    assert [aim.is_met(late) for aim in choose_aims(late)] == [False, True]


NUMBERS = np.arange(40 * sliding.EVENTS)
RECEIVED = 1_000_000 * 1_000 + NUMBERS * 900
"""Forty ticks, within two seconds; the first whole second of which begins at a thousand."""


def report_at(end: int) -> WindowReport:
    inside = NUMBERS[(end - 60_000_000 <= RECEIVED) & (end > RECEIVED)]
    rows = {each: (count, tenths / 10 / count) for each, (count, tenths) in sliding.expect_means(inside).items()}
    return WindowReport("urn:e", end, end, rows)


def test_windows_are_held_to_what_the_log_took_in() -> None:
    reports = [report_at(1_001_000_000), report_at(1_002_000_000)]
    found = check_reports(reports, NUMBERS, RECEIVED)
    assert found["windows"] == 2
    assert found["rows"] > 50
    platform, (count, mean) = max(reports[0].rows.items())
    wrong = replace(reports[0], rows={**reports[0].rows, platform: (count + 1, mean)})
    with pytest.raises(Disagreement, match=f"platform {platform}"):
        check_reports([wrong], NUMBERS, RECEIVED)
    missing = replace(reports[0], rows={each: row for each, row in reports[0].rows.items() if each != platform})
    with pytest.raises(Disagreement, match=f"platform {platform}"):
        check_reports([missing], NUMBERS, RECEIVED)


def test_means_of_readings_are_those_of_an_engine_of_others() -> None:
    import pyoxigraph as ox

    chosen = NUMBERS[100:1_400]
    store = ox.Store()
    store.extend(ox.parse(sliding.write_body(range(100, 1_400)), format=ox.RdfFormat.N_QUADS))
    asked = sliding.write_rival_query().split("WINDOW b:w ")[-1]
    head = f"PREFIX sosa: <{SOSA}> SELECT ?platform (SUM(?value) AS ?sum) (COUNT(?value) AS ?count) WHERE {{ "
    found = store.query(head + asked, use_default_graph_as_union=True)
    assert isinstance(found, ox.QuerySolutions)
    told = {number(row["platform"]): (number(row["count"]), round(float(text(row["sum"])) * 10)) for row in found}
    assert told == sliding.expect_means(chosen)
    assert len(told) > 20


def text(term: object) -> str:
    return term.value  # type: ignore[attr-defined,no-any-return]


def number(term: object) -> int:
    return int(text(term).rpartition("/")[2])


def test_a_second_of_readings_has_as_many_triples_as_it_says() -> None:
    second = sliding.write_body(range(sliding.TICKS * sliding.EVENTS))
    assert second.count(b"\n") == sliding.TRIPLES_PER_S == 2_000


RIVAL = """
import json, sys
assert "RANGE 60000 STEP 1000" in json.loads(sys.stdin.readline())["query"]
print(json.dumps({"ready": True}), flush=True)
times = set()
for line in sys.stdin:
    at, _, triples = line.partition("\\t")
    at = int(at)
    if at >= 1_000 and at % 1_000 == 0 and at not in times:
        times.add(at)
        print(json.dumps({"newest": at - 50, "at": at + 130}), flush=True)
"""


@pytest.fixture
def rival(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    program = tmp_path / "rival.py"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sliding.COMMANDS, "rsp-js", lambda home: [sys.executable, str(program)])
    return program


def test_a_rival_is_timed_window_by_window(rival: Path) -> None:
    rival.write_text(RIVAL)
    found = sliding.measure_rival("rsp-js", 3, 1, lambda text: None)
    assert (found["windows"], found["missing"]) == (1, 0)
    assert found["late_ms"] == {"p50": 130, "p99": 130, "max": 130}
    assert found["memory_mb"] > 0


def test_a_rival_that_ends_is_told_of(rival: Path) -> None:
    rival.write_text("import sys; sys.exit(1)")
    found = sliding.measure_rival("rsp-js", 2, 1, lambda text: None)
    assert found == {"version": "1.3.5", "failed": "it ended before it was ready"}
    rival.write_text(RIVAL.replace("times.add(at)", "sys.exit(1)"))
    found = sliding.measure_rival("rsp-js", 3, 1, lambda text: None)
    assert found["failed"].startswith("it ended 1.")


def test_rows_compare_as_bags() -> None:
    one = AnswerRows(np.array([1, 1]), np.array([5, 5]), np.array([2, 2]))
    check_rows(one, one)
    with pytest.raises(Disagreement):
        check_rows(one, AnswerRows(np.array([1, 1]), np.array([5, 5]), np.array([2, 3])))
