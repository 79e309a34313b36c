"""Tokens are positions in another coat: same order, nothing else accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.model import END, START, format_position, parse_position
from triplewire.model.errors import BadRequest

positions = st.integers(START, END)


@given(positions, positions)
def test_the_order_of_tokens_is_the_order_of_positions(one: int, other: int) -> None:
    assert (format_position(one) < format_position(other)) == (one < other)


@given(positions)
def test_a_token_comes_back_as_its_position(position: int) -> None:
    assert parse_position(format_position(position)) == position


def test_earliest_is_the_start() -> None:
    assert parse_position("earliest") == START


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "latest",
        "00000000000000zz",
        "000000000000000A",
        "0x00000000000001",
        "-000000000000001",
        "f" * 16,
        "0" * 17,
    ],
)
def test_anything_else_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(BadRequest, match="use `earliest`"):
        parse_position(text)


@given(st.text(max_size=18))
def test_whatever_is_accepted_is_a_token(text: str) -> None:
    try:
        position = parse_position(text)
    except BadRequest:
        return
    assert text in (format_position(position), "earliest")
