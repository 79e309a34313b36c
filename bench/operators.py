"""`bench operators`: the cost of a match with each ontological and bag operator, beside a knowledge-based network.

The comparison is D. H. Jones, *An approach to managed clustering for Knowledge-based Networks*, PhD thesis, Trinity
College Dublin, 2013, section 6.3.1, table 15: one broker, subscriptions that are all different, 300 publications that
each match one of them; milliseconds from publication to delivery. Classes and worked examples are those of its tables
7, 8 and 14.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from rich.console import RenderableType

from bench.harness import Machine, Report, Say, check_count, make_entries
from bench.tables import list_rows
from triplewire.matching.filters import document_query
from triplewire.matching.matcher import Matcher
from triplewire.matching.shapes import lift
from triplewire.model import Kind, Subscription
from triplewire.model.terms import XSD
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology, ontology_to_value
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

SIZES = (500, 1_000, 2_000, 3_000)
MANY = 100_000
SECONDS = 3.0
"""For how long events come one by one; the rest is left out."""


BASE = "http://conference.example/"
_DATA = json.loads(Path(__file__).with_name("operators.json").read_text())
TABLE_15: Mapping[str, Report] = _DATA["table_15"]
"""Rows by the symbol of the operator, the most expensive first: its name, and mean and standard deviation at each size,
or null where the broker ran out of memory."""


def read_thesis(symbol: str, subscriptions: int) -> float | None:
    """Return the mean time of a match in milliseconds; None for a size that was not measured, or not survived."""
    figures = dict(zip(SIZES, TABLE_15[symbol]["figures"], strict=True)).get(subscriptions)
    return None if figures is None else float(figures[0])


def iri_of(local: str) -> str:
    return f"<{BASE}{local}>"


def read_ontology() -> str:
    """Return the ontology of conferences as the registry holds it: a triple a line."""
    return Path(__file__).with_name("conference.tsv").read_text().removesuffix("\n")


@dataclass(frozen=True)
class OperatorExample:
    """An operator as a filter writes it, its operand, and values of events that it accepts and refuses."""

    operator: str
    operand: str | Sequence[str]
    accepted: Sequence[str]
    refused: Sequence[str]
    strict: bool = False

    @property
    def symbol(self) -> str:
        """The operator without the relation of a bag's elements."""
        return self.operator.partition("/")[0]

    @property
    def name(self) -> str:
        return f"{self.operator} strict" if self.strict else self.operator

    def make_filter(self, number: int) -> dict[str, Any]:
        """Return a filter that shares nothing with others, because it asks for a number, too."""
        value: object = [{"@id": BASE + each} for each in self.operand]
        if isinstance(self.operand, str):
            value = {"@id": BASE + self.operand}
        wanted = {"attribute": f"{BASE}value", "op": self.operator, "value": value, "strict": self.strict}
        return {"filter": [wanted, {"attribute": f"{BASE}number", "op": "=", "value": number}]}

    def write_event(self, number: int, *, refused: bool = False) -> str:
        subject = iri_of(f"publication/{number}")
        lines = [
            f"{subject}\t{iri_of('value')}\t{iri_of(each)}" for each in (self.refused if refused else self.accepted)
        ]
        return "\n".join([*lines, f"{subject}\t{iri_of('number')}\t{_integer(number)}"])


EXAMPLES = tuple(OperatorExample(**each) for each in _DATA["examples"])


def run(most: int, matches: int, say: Say) -> Report:
    """Measure every operator at each size up to `most`, with at most so many matches. Raises Disagreement."""
    machine, found = Machine(), Report()
    sizes = [size for size in (*SIZES, MANY) if size <= most]
    for number, example in enumerate(EXAMPLES, 1):
        name = TABLE_15[example.symbol]["name"]
        say(f"operator {number} of {len(EXAMPLES)}: {example.name}, {name}")
        found[example.name] = {"thesis": name, "sizes": [_measure(example, size, matches) for size in sizes]}
    return {"machine": machine.describe(), "matches": matches, "operators": found}


def _measure(example: OperatorExample, size: int, matches: int) -> Report:
    """Return the milliseconds for each match: for events that come one by one, and for events in one batch."""
    matcher = SizedMatcher(example, size)
    numbers = [size * each // matches for each in range(matches)]
    matcher.match(numbers, refused=True)
    alone = list[float]()
    for number in numbers:
        alone.append(matcher.match([number]))
        if sum(alone) > SECONDS:
            break
    return {
        "subscriptions": size,
        "events": len(alone),
        "ms": round(mean(alone) * 1_000, 3),
        "together_ms": round(matcher.match(numbers) / matches * 1_000, 4),
        "thesis_ms": read_thesis(example.symbol, size),
    }


class SizedMatcher:
    """Subscriptions that differ in a number, in a matcher such as a worker has."""

    def __init__(self, example: OperatorExample, size: int) -> None:
        made = [*make_changes(example, size)]
        self._example, self._matcher, self._position = example, Matcher.from_changes(made), made[-1].position

    def match(self, numbers: Sequence[int], *, refused: bool = False) -> float:
        """Return the seconds that events with these numbers take, in one batch. Raises Disagreement unless each has
        one match, or none where events are to be refused."""
        rows = []
        for number in numbers:
            self._position += 1
            text = self._example.write_event(number, refused=refused)
            rows.append({"position": self._position, "event": f"{BASE}event/{self._position}", "text": text})
        entries = make_entries(rows)
        began = time.perf_counter()
        found = self._matcher.match(entries)
        seconds = time.perf_counter() - began
        check_matches(self._example.name, found.num_rows, 0 if refused else len(numbers))
        return seconds


def check_matches(operator: str, found: int, right: int) -> None:
    check_count(operator, found, right, "{found} matches, not {right}")


def make_changes(example: OperatorExample, size: int) -> Iterator[RegistryChange]:
    """Yield the ontology, the shape and the subscriptions. Only one is lifted, with a number that stands for all."""
    text, example_number = read_ontology(), 987_654_321
    loaded = LoadedOntology("conference", text, triples=text.count("\n") + 1, classes=0, properties=0)
    lifted = lift(document_query(example.make_filter(example_number)), solutions=False)
    at = lifted.constants.index(_integer(example_number))
    yield RegistryChange(1, ONTOLOGY, loaded.name, ontology_to_value(loaded))
    yield RegistryChange(2, SHAPE, lifted.shape.key, lifted.shape.to_value())
    for number in range(size):
        constants = (*lifted.constants[:at], _integer(number), *lifted.constants[at + 1 :])
        made = Subscription(f"{number:08x}", None, Kind.SIGNAL, lifted.shape.key, constants)
        yield RegistryChange(3 + number, SUBSCRIPTION, made.id, subscription_to_value(made))


def _integer(number: int) -> str:
    return f'"{number}"^^<{XSD}integer>'


def make_tables(report: Report) -> list[RenderableType]:
    columns = {"operator": "operator", "thesis": "in the thesis", "subscriptions": "subscriptions"}
    columns |= {"ms": "ms", "together_ms": "together", "thesis_ms": "thesis, ms"}
    found = report["operators"].items()
    rows = ({"operator": name, **operator, **each} for name, operator in found for each in operator["sizes"])
    return [list_rows("time per match", columns, rows, 2)]
