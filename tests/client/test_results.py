"""Rows come out of a document however it is cut into pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.harness import Said, house, run
from triplewire.client import AsyncClient, ResultParser
from triplewire.history.requests import HistoryRequest
from triplewire.model.errors import QueryLimit, Unavailable

ROWS = [
    {"a": {"type": "literal", "value": 'ä "bindings":[ ]} 𝄞'}},
    {},
    {"b": {"type": "uri", "value": "urn:x"}, "a": {"type": "literal", "value": "{\\"}},
]
DOCUMENT = orjson.dumps({"head": {"vars": ["a", "b"]}, "results": {"distinct": False, "bindings": ROWS}})


@given(st.lists(st.integers(0, len(DOCUMENT)), max_size=8), st.booleans())
def test_rows_are_the_same_for_all_cuts(cuts: list[int], spaced: bool) -> None:
    document = DOCUMENT.replace(b"},{", b"},\n {") if spaced else DOCUMENT
    places = [0, *sorted(cuts), len(document)]
    rows = ResultParser()
    pieces = [document[start:end] for start, end in pairwise(places)]
    assert [row for piece in pieces for row in rows.feed(piece)] == ROWS
    assert rows.names == ("a", "b")


def test_a_row_is_given_as_soon_as_it_is_whole() -> None:
    rows = ResultParser()
    end = DOCUMENT.index(b",{}")
    assert list(rows.feed(DOCUMENT[: end - 1])) == []
    assert list(rows.feed(DOCUMENT[end - 1 : end])) == ROWS[:1]


def test_a_document_without_rows_has_names() -> None:
    rows = ResultParser()
    assert list(rows.feed(b'{"head":{"vars":["x"]},"results":{"bindings":[]}}')) == []
    assert rows.names == ("x",)


async def take(rows: AsyncIterator[object], into: list[object]) -> None:
    async for row in rows:
        into.append(row)


class Failing:
    """Answers with the rows, and then goes over a limit."""

    async def ask(self, request: HistoryRequest) -> Said:
        return Said([DOCUMENT[:-3], QueryLimit("30 s are over")])


def test_an_answer_that_is_cut_off_is_not_taken_for_the_whole() -> None:
    async def scene() -> None:
        async with house(change=lambda parts: replace(parts, answers=Failing())) as at, AsyncClient(at.url) as client:
            found: list[object] = []
            with pytest.raises(Unavailable, match="cut off"):
                await take(client.rows("SELECT * {}"), found)
            assert found == ROWS[: len(found)]

    run(scene())
