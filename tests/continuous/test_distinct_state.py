"""Memories: an answer of a set is told once, through restarts, and again where its batch is done again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from triplewire.continuous.state import DistinctState, StateChangelog
from triplewire.model import MATCHES


def matches(*rows: tuple[int, int, str]) -> pa.Table:
    values = [{"position": at, "group": group, "value": 1.0, "terms": ["0", term]} for at, group, term in rows]
    return pa.Table.from_pylist(values, schema=MATCHES)


def told(memory: DistinctState, batch: int, *rows: tuple[int, int, str]) -> list[int]:
    return [int(each) for each in memory.drop_known(batch, matches(*rows), {7: 0})["position"].to_pylist()]


def test_an_answer_of_a_set_is_told_once_and_others_as_often_as_they_come(tmp_path: Path) -> None:
    memory = DistinctState(StateChangelog(tmp_path))

    assert told(memory, 0, (1, 7, '"a"'), (2, 7, '"a"'), (3, 8, '"a"'), (4, 8, '"a"'), (5, 7, '"b"')) == [1, 3, 4, 5]
    assert told(memory, 1, (6, 7, '"b"'), (7, 7, '"c"')) == [7]


def test_what_was_told_is_known_after_a_restart(tmp_path: Path) -> None:
    told(DistinctState(StateChangelog(tmp_path)), 0, (1, 7, '"a"'))

    assert told(DistinctState(StateChangelog(tmp_path)), 1, (2, 7, '"a"'), (3, 7, '"b"')) == [3]


def test_a_batch_that_is_done_again_tells_the_same(tmp_path: Path) -> None:
    memory = DistinctState(StateChangelog(tmp_path))
    told(memory, 0, (1, 7, '"a"'))
    told(memory, 1, (2, 7, '"b"'))

    assert told(DistinctState(StateChangelog(tmp_path)), 1, (2, 7, '"b"'), (3, 7, '"a"')) == [2]
    assert told(memory, 1, (2, 7, '"b"'), (3, 7, '"a"')) == [2]


def test_what_is_remembered_of_a_query_is_counted_and_goes_with_it(tmp_path: Path) -> None:
    memory = DistinctState(StateChangelog(tmp_path))
    rows = matches((1, 7, '"a"'), (2, 7, '"b"'), (3, 8, '"a"'), (4, 8, '"a"'))
    memory.drop_known(0, rows, {7: 0, 8: 0})

    assert (memory.groups_above(0), memory.groups_above(1), memory.groups_above(2)) == ([7, 8], [7], [])
    memory.drop_known(1, matches((5, 8, '"a"')), {8: 0})
    assert memory.groups_above(0) == [8]
    again = DistinctState(StateChangelog(tmp_path))
    assert again.drop_known(2, matches((6, 8, '"a"'), (7, 8, '"c"')), {8: 0})["position"].to_pylist() == [7]
    assert again.groups_above(0) == [8]


def test_an_answer_with_a_piece_from_before_its_query_is_none_and_is_not_remembered(tmp_path: Path) -> None:
    memory = DistinctState(StateChangelog(tmp_path))
    rows = matches((4, 7, '"a"')), matches((5, 7, '"a"')).set_column(3, MATCHES.field("value"), pa.array([3.0]))

    assert [memory.drop_known(0, each, {7: 2})["position"].to_pylist() for each in rows] == [[], [5]]
