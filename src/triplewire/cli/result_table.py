"""Tables of SPARQL results: rows as they arrive, in columns that fit the terminal, with IRIs shortened by the prefixes
of the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from triplewire.model.terms import RDF, TW, XSD

WELL_KNOWN: Mapping[str, str] = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "sh": "http://www.w3.org/ns/shacl#",
    "prov": "http://www.w3.org/ns/prov#",
    "time": "http://www.w3.org/2006/time#",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "qudt": "http://qudt.org/schema/qudt/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "https://schema.org/",
    "tw": TW,
}

_STEP = re.compile(
    r"""\s+ | \#[^\r\n]* | BASE\s*<[^>]*> | VERSION\s*(?:"[^"]*"|'[^']*')
      | PREFIX\s+(?P<prefix>[^\s:<>]*)\s*:\s*<(?P<address>[^>]*)>""",
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+")
_LOCAL = re.compile(r"\w(?:[\w.-]*[\w-])?|")
"""A local name that needs no escapes."""


@dataclass(frozen=True)
class QueryPrologue:
    """The form of a query in lower case, empty if it is unknown, and the prefixes that shorten IRIs of its answer."""

    form: str = ""
    prefixes: Mapping[str, str] = field(default_factory=lambda: WELL_KNOWN)

    @property
    def of_graph(self) -> bool:
        """Whether the answer is triples."""
        return self.form in ("construct", "describe")

    def short(self, address: str) -> str:
        """Return an IRI with the longest prefix that fits, or in brackets if none does."""
        fits = [
            (len(address) - len(start), f"{prefix}:{address[len(start) :]}")
            for prefix, start in self.prefixes.items()
            if start and address.startswith(start) and _LOCAL.fullmatch(address, len(start))
        ]
        return min(fits)[1] if fits else f"<{address}>"


def read_prologue(text: str) -> QueryPrologue:
    """Parse the prologue of a query. Its own prefixes replace well-known ones."""
    prefixes, at = {}, 0
    while step := _STEP.match(text, at):
        if step["address"] is not None:
            prefixes[step["prefix"]] = step["address"]
        at = step.end()
    word = _WORD.match(text, at)
    return QueryPrologue(word[0].lower() if word else "", {**WELL_KNOWN, **prefixes})


PAGE = 500
"""Rows that decide how wide columns are; rows after them are printed as they arrive."""
NARROWEST = 5
"""The least width of a column: a table of more columns than fit is wider than the terminal."""
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
class ResultCell:
    """A term as text."""

    text: str = ""
    style: str = ""
    number: bool = False


@dataclass(frozen=True)
class ResultColumn:
    """A column: its heading, its width in cells of the terminal, and whether its values are aligned right."""

    name: str
    width: int
    right: bool

    def line(self, text: str, style: str = "") -> Text:
        shown = shorten(text, self.width)
        space = " " * (self.width - cell_len(shown))
        return Text(space + shown if self.right else shown + space, style)


def format_cell(term: Mapping[str, Any] | None, prologue: QueryPrologue) -> ResultCell:
    """Format a term of the JSON results format, with control characters escaped."""
    if term is None:
        return ResultCell()
    if term["type"] == "triple":
        parts = (format_cell(term["value"][name], prologue).text for name in ("subject", "predicate", "object"))
        return ResultCell(f"<<( {' '.join(parts)} )>>", _STYLES["triple"])
    if term["type"] == "uri":
        return ResultCell(_harmless(prologue.short(term["value"])), _STYLES["uri"])
    if term["type"] == "bnode":
        return ResultCell("_:" + _harmless(term["value"]), _STYLES["bnode"])
    return _literal(term, prologue)


def _literal(term: Mapping[str, Any], prologue: QueryPrologue) -> ResultCell:
    text, datatype = _harmless(term["value"]), term.get("datatype", "")
    if datatype in _NUMBERS:
        return ResultCell(text, "green", number=True)
    if language := term.get("xml:lang"):
        return ResultCell(f"{text}@{language}")
    return ResultCell(text if datatype in _PLAIN else f"{text}^^{_harmless(prologue.short(datatype))}")


def _harmless(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text that is wider: the ends of an IRI say most."""
    if cell_len(text) <= width:
        return text
    end = (width - 1) // 2
    return _front(text, width - 1 - end) + DOTS + _front(text[::-1], end)[::-1]


def _front(text: str, width: int) -> str:
    taken = text[:width]
    while cell_len(taken) > width:
        taken = taken[:-1]
    return taken


def fit_widths(wanted: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns that share `room`: narrow columns have the width they want, the others the same."""
    given = dict.fromkeys(range(len(wanted)), 0)
    left, waiting = room, sorted(given, key=lambda each: wanted[each])
    for index, column in enumerate(waiting):
        fair = max(NARROWEST, left // (len(waiting) - index))
        given[column] = min(wanted[column], fair)
        left -= given[column]
    return [given[column] for column in range(len(wanted))]


@dataclass(frozen=True)
class ResultTable:
    """Columns, the first rows, by which they were measured, and the rows that follow."""

    columns: Sequence[ResultColumn]
    page: Sequence[Sequence[ResultCell]]
    later: Iterator[Sequence[ResultCell]]

    def print(self, console: Console) -> int:
        """Print the rows as they arrive, once; return their number."""
        _print_line(console, [column.line(f"?{column.name}", "bold") for column in self.columns])
        _print_line(console, [Text("─" * column.width, "dim") for column in self.columns])
        count = 0
        for row in chain(self.page, self.later):
            parts = zip(self.columns, row, strict=True)
            _print_line(console, [column.line(each.text, each.style) for column, each in parts])
            count += 1
        return count


def build_table(
    rows: Iterator[Row], names: Callable[[], Sequence[str]], prologue: QueryPrologue, room: int | None
) -> ResultTable:
    """Build a table that is at most `room` wide; None cuts nothing, and waits for the last row. `names` is called once
    the first row is there."""
    page = list(rows if room is None else islice(rows, PAGE))
    known = names()

    def cells(row: Row) -> list[ResultCell]:
        return [format_cell(row.get(name), prologue) for name in known]

    first = [*map(cells, page)]
    return ResultTable(_columns(known, first, room), first, map(cells, rows))


def _columns(names: Sequence[str], cells: Sequence[Sequence[ResultCell]], room: int | None) -> list[ResultColumn]:
    by_column = [[row[index] for row in cells] for index in range(len(names))]
    wanted = [
        max([cell_len(name) + 1, *(cell_len(each.text) for each in column)])
        for name, column in zip(names, by_column, strict=True)
    ]
    given = wanted if room is None else fit_widths(wanted, room - len(GAP) * (len(names) - 1))
    right = [_numeric(column) for column in by_column]
    return [ResultColumn(*each) for each in zip(names, given, right, strict=True)]


def _numeric(column: Iterable[ResultCell]) -> bool:
    numbers = [each.number for each in column if each.text]
    return bool(numbers) and all(numbers)


def _print_line(console: Console, parts: Sequence[Text]) -> None:
    console.print(Text(GAP).join(parts), soft_wrap=True)
