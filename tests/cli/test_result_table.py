"""Tables fit, tell numbers from words, and obey nothing that data say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from triplewire.cli.result_table import (
    NARROWEST,
    PAGE,
    QueryPrologue,
    Row,
    build_table,
    fit_widths,
    format_cell,
    shorten,
)
from triplewire.model.terms import XSD


def uri(address: str) -> dict[str, Any]:
    return {"type": "uri", "value": address}


def literal(value: object, datatype: str = "", language: str = "") -> dict[str, Any]:
    extras = {"datatype": XSD + datatype} if datatype else {"xml:lang": language} if language else {}
    return {"type": "literal", "value": str(value), **extras}


def printed(rows: Sequence[Row], names: list[str], width: int | None = 60) -> list[str]:
    file = StringIO()
    console = Console(file=file, width=width or 60, highlight=False)
    made = build_table(iter(rows), lambda: names, QueryPrologue(), width)
    assert made.print(console) == len(rows)
    return file.getvalue().splitlines()


def test_numbers_stand_on_the_right_and_what_is_unbound_is_blank() -> None:
    rows = [
        {"s": uri("urn:a"), "v": literal(5, "integer")},
        {"s": uri("http://www.w3.org/ns/sosa/Sensor"), "v": literal("31.5", "decimal")},
        {"v": literal("1E3", "double")},
    ]
    assert printed(rows, ["s", "v"]) == [
        "?s             ?v",
        "───────────  ────",
        "<urn:a>         5",
        "sosa:Sensor  31.5",
        "              1E3",
    ]


def test_a_column_with_a_word_in_it_stands_on_the_left() -> None:
    assert printed([{"v": literal(5, "integer")}, {"v": literal("many")}], ["v"])[2:] == ["5   ", "many"]


def test_long_addresses_lose_their_middle_and_short_columns_nothing() -> None:
    rows = [{"s": uri("http://example.org/" + "x" * 90 + "/end"), "n": literal(7, "integer")}]
    line = printed(rows, ["s", "n"], 40)[2]
    assert cell_len(line) == 40
    assert line.startswith("<http://example.")
    assert line.endswith("xx/end>   7")
    assert "…" in line


def test_with_no_width_nothing_is_cut() -> None:
    address = "http://example.org/" + "x" * 200
    assert printed([{"s": uri(address)}], ["s"], None)[2] == f"<{address}>"


def test_no_rows_still_have_names() -> None:
    assert printed([], ["s", "long"]) == ["?s  ?long", "──  ─────"]


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (literal("chaud", language="fr"), "chaud@fr"),
        (literal("plain"), "plain"),
        (literal("2026-11-15T00:00:00Z", "dateTime"), "2026-11-15T00:00:00Z"),
        (literal("P1D", "duration"), "P1D^^xsd:duration"),
        ({"type": "bnode", "value": "b0"}, "_:b0"),
        (
            {"type": "triple", "value": {"subject": uri("urn:s"), "predicate": uri("urn:p"), "object": literal("o")}},
            "<<( <urn:s> <urn:p> o )>>",
        ),
        (literal("a\nb\tc"), r"a\nb\tc"),
        (literal("\x1b[2J\u202eevil"), r"\x1b[2J\u202eevil"),
        (None, ""),
    ],
)
def test_terms_as_they_are_shown(term: dict[str, Any] | None, text: str) -> None:
    assert format_cell(term, QueryPrologue()).text == text


def test_what_looks_like_markup_is_shown() -> None:
    assert printed([{"s": literal("[red]x[/red]")}], ["s"])[2] == "[red]x[/red]"


def test_rows_behind_the_first_page_are_printed_as_they_come() -> None:
    taken: list[int] = []

    def rows() -> Iterator[Row]:
        for number in range(PAGE + 10):
            taken.append(number)
            yield {"n": literal("x" * (5 if number < PAGE else 90))}

    made = build_table(rows(), lambda: ["n"], QueryPrologue(), 60)
    assert len(taken) == PAGE
    file = StringIO()
    assert made.print(Console(file=file, width=60)) == PAGE + 10
    assert file.getvalue().splitlines()[-1] == "xx…xx"


@given(st.text(max_size=30), st.integers(NARROWEST, 20))
def test_a_cut_text_fits(text: str, width: int) -> None:
    shown = shorten(text, width)
    assert cell_len(shown) <= width
    assert shown == text or (cell_len(text) > width and "…" in shown)


@given(st.lists(st.integers(1, 200), min_size=1, max_size=8), st.integers(80, 200))
def test_columns_share_the_room(wanted: list[int], room: int) -> None:
    found = fit_widths(wanted, room)
    assert sum(found) <= room
    assert all(got <= wish for got, wish in zip(found, wanted, strict=True))
    assert found == wanted or sum(found) == room
