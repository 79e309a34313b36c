"""Tables of results: rows as they come, in columns that fit the terminal.

The first rows decide how wide the columns are; those after them are printed as they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from triplewire.cli.prologues import Prologue
from triplewire.model.terms import XSD

PAGE = 500
"""Rows that are looked at before the first is printed."""
NARROWEST = 5
"""A column is never cut below this: a table of more columns than fit is wider than the terminal."""
GAP = "  "
DOTS = "…"

Row = Mapping[str, Mapping[str, Any]]

_NUMBERS = frozenset(
    XSD + name
    for name in (
        *("integer", "decimal", "float", "double", "int", "long", "short", "byte"),
        *("nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"),
        *("unsignedInt", "unsignedLong", "unsignedShort", "unsignedByte"),
    )
)
_PLAIN = frozenset({"", *(XSD + name for name in ("string", "boolean", "dateTime", "date", "time"))})
_STYLES = {"uri": "cyan", "bnode": "magenta", "triple": "magenta"}


@dataclass(frozen=True)
class Cell:
    """A term as it is shown."""

    text: str = ""
    style: str = ""
    number: bool = False


@dataclass(frozen=True)
class Column:
    """One column: its heading, its width in cells of the terminal, and on which side its values stand."""

    name: str
    width: int
    right: bool

    def line(self, text: str, style: str = "") -> Text:
        shown = cut(text, self.width)
        space = " " * (self.width - cell_len(shown))
        return Text(space + shown if self.right else shown + space, style)


def cell(term: Mapping[str, Any] | None, prologue: Prologue) -> Cell:
    """A term of the JSON results format. What a terminal would obey instead of show is escaped."""
    if term is None:
        return Cell()
    if term["type"] == "triple":
        parts = (cell(term["value"][name], prologue).text for name in ("subject", "predicate", "object"))
        return Cell(f"<<( {' '.join(parts)} )>>", _STYLES["triple"])
    if term["type"] == "uri":
        return Cell(_harmless(prologue.short(term["value"])), _STYLES["uri"])
    if term["type"] == "bnode":
        return Cell("_:" + _harmless(term["value"]), _STYLES["bnode"])
    return _literal(term, prologue)


def _literal(term: Mapping[str, Any], prologue: Prologue) -> Cell:
    text, datatype = _harmless(term["value"]), term.get("datatype", "")
    if datatype in _NUMBERS:
        return Cell(text, "green", number=True)
    if language := term.get("xml:lang"):
        return Cell(f"{text}@{language}")
    return Cell(text if datatype in _PLAIN else f"{text}^^{_harmless(prologue.short(datatype))}")


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def cut(text: str, width: int) -> str:
    """The text, without its middle if it is wider: of addresses the beginning and the end tell most."""
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 2
    return _front(text, width - 1 - end) + DOTS + _front(text[::-1], end)[::-1]


def _front(text: str, width: int) -> str:
    taken = text[:width]
    while cell_len(taken) > width:
        taken = taken[:-1]
    return taken


def widths(wanted: Sequence[int], room: int) -> list[int]:
    """How wide columns are that together may take `room`: the narrow ones as they wish, the others alike."""
    given = dict.fromkeys(range(len(wanted)), 0)
    left, waiting = room, sorted(given, key=lambda each: wanted[each])
    for index, column in enumerate(waiting):
        fair = max(NARROWEST, left // (len(waiting) - index))
        given[column] = min(wanted[column], fair)
        left -= given[column]
    return [given[column] for column in range(len(wanted))]


@dataclass(frozen=True)
class Table:
    """Columns, the rows that decided about them, and those that are still to come."""

    columns: Sequence[Column]
    page: Sequence[Sequence[Cell]]
    later: Iterator[Sequence[Cell]]

    def print(self, console: Console) -> int:
        """Print the rows as they come, once, and tell how many there were."""
        _print_line(console, [column.line(f"?{column.name}", "bold") for column in self.columns])
        _print_line(console, [Text("─" * column.width, "dim") for column in self.columns])
        count = 0
        for row in chain(self.page, self.later):
            parts = zip(self.columns, row, strict=True)
            _print_line(console, [column.line(each.text, each.style) for column, each in parts])
            count += 1
        return count


def table(rows: Iterator[Row], names: Callable[[], Sequence[str]], prologue: Prologue, room: int | None) -> Table:
    """The table of rows that takes at most `room`; None cuts nothing, and so waits for the last row. `names` are asked
    for when the first row is there."""
    page = list(rows if room is None else islice(rows, PAGE))
    known = names()

    def cells(row: Row) -> list[Cell]:
        return [cell(row.get(name), prologue) for name in known]

    first = [*map(cells, page)]
    return Table(_columns(known, first, room), first, map(cells, rows))


def _columns(names: Sequence[str], cells: Sequence[Sequence[Cell]], room: int | None) -> list[Column]:
    by_column = [[row[index] for row in cells] for index in range(len(names))]
    wanted = [
        max([cell_len(name) + 1, *(cell_len(each.text) for each in column)])
        for name, column in zip(names, by_column, strict=True)
    ]
    given = wanted if room is None else widths(wanted, room - len(GAP) * (len(names) - 1))
    right = [_numeric(column) for column in by_column]
    return [Column(*each) for each in zip(names, given, right, strict=True)]


def _numeric(column: Iterable[Cell]) -> bool:
    said = [each.number for each in column if each.text]
    return bool(said) and all(said)


def _print_line(console: Console, parts: Sequence[Text]) -> None:
    console.print(Text(GAP).join(parts), soft_wrap=True)
