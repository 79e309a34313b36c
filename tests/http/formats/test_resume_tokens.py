"""Marks: ids that tell where a connection with several subscriptions was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.http.formats.messages import ResumeToken
from triplewire.model import END, START, format_position
from triplewire.model.errors import BadRequest

POSITIONS = st.sampled_from([START, 1, 2, 15, 16, 2**40, END - 1])
MARKS = st.builds(ResumeToken, POSITIONS, st.one_of(POSITIONS, st.just(END)))


@given(MARKS)
def test_a_mark_is_read_as_it_was_written(mark: ResumeToken) -> None:
    assert ResumeToken.parse(str(mark)) == mark


@given(MARKS, MARKS)
def test_marks_of_one_kind_are_ordered_as_their_texts(one: ResumeToken, other: ResumeToken) -> None:
    if (one.made == END) == (other.made == END):
        assert (one < other) == (str(one) < str(other))


@given(MARKS)
def test_all_was_told_below_the_cursor_and_nothing_that_comes_after_the_mark(mark: ResumeToken) -> None:
    assert mark.cursor <= mark.position
    assert ResumeToken(mark.cursor) <= mark or mark.position == START


def test_where_all_was_told_a_mark_is_a_position() -> None:
    assert str(ResumeToken(7)) == format_position(7)
    assert ResumeToken.parse("earliest") == ResumeToken(START)
    assert str(ResumeToken(7, 3)) == f"{format_position(7)}~{format_position(3)}"


@pytest.mark.parametrize(
    "text",
    ["", "~", "7", f"{format_position(7)}~", f"~{format_position(7)}", f"{format_position(7)}~3", "earliest~earliest"],
)
def test_what_is_no_mark_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        ResumeToken.parse(text)
