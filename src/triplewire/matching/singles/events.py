"""Events as they are looked at one by one: taken apart once, for all subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, TypeAlias

from triplewire.matching.singles.facts import Undecided
from triplewire.model.terms import XSD
from triplewire.sparql.compiler.scans import HEADER_PREDICATES

Quad: TypeAlias = tuple[str, str, str, int]
"""Subject, predicate, object, and its number."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Parsed:
    """One event, given as a row of an `ENTRIES` table. Not safe for threads: what is asked for is kept."""

    def __init__(self, entry: Mapping[str, Any]) -> None:
        self._entry = entry
        self.position: int = entry["position"]
        self.graph = f"<{entry['event']}>"
        lines = entry["text"].split("\n")
        self.quads: list[Quad] = [(*_triple(line), number) for number, line in enumerate(lines)]
        self.whole = len(set(lines)) == len(lines)
        """Whether no triple comes twice: otherwise solutions would be counted in another way."""
        self.by: dict[str, list[Quad]] = {}
        for quad in self.quads:
            self.by.setdefault(quad[1], []).append(quad)

    def header(self, predicate: str) -> Sequence[Quad]:
        """The triple that is made of a header, if the event has it."""
        if predicate not in self._headers:
            self._headers[predicate] = self._headed(predicate)
        return self._headers[predicate]

    @cached_property
    def _headers(self) -> dict[str, Sequence[Quad]]:
        return {}

    def _headed(self, predicate: str) -> Sequence[Quad]:
        name, number = HEADER_PREDICATES[predicate]
        value = self._entry[name]
        if value is None:
            return ()
        term = _moment(value) if name in ("time", "received") else _name(value)
        return ((self.graph, predicate, term, number),)


def _triple(line: str) -> tuple[str, str, str]:
    subject, predicate, obj = line.split("\t")
    return subject, predicate, obj


def _name(value: str) -> str:
    if '"' in value or "\\" in value or not value.isprintable():
        raise Undecided
    return f'"{value}"'


def _moment(microseconds: int) -> str:
    """As DuckDB writes it: a fraction without zeros at its end."""
    try:
        at = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise Undecided from error
    written = at.replace(tzinfo=None).isoformat()
    return f'"{written.rstrip("0") if "." in written else written}Z"^^<{XSD}dateTime>'
