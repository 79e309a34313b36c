"""`bench operators`: what a match costs with each ontological and bag operator, beside a knowledge-based network."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

import pyarrow as pa

from triplewire.bench.machine import description, reference_ms
from triplewire.bench.operators_thesis import SIZES, TABLE_15
from triplewire.bench.operators_world import EXAMPLES, Example, ontology
from triplewire.matching.filters import document_query
from triplewire.matching.matcher import Matcher
from triplewire.matching.shapes import lift
from triplewire.model import ENTRIES, Kind, Subscription
from triplewire.model.errors import TriplewireError
from triplewire.model.terms import XSD
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology
from triplewire.storage.registry.ontologies import ontology_to_value as ontology_value
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

MATCHES = 300
"""Events of a measurement, each of which matches one subscription."""
MANY = 100_000
SECONDS = 3.0
"""For how long events come one by one; those that then have not come are left out."""

_MARK = 987_654_321

Say = Callable[[str], None]


class Disagreement(TriplewireError):
    """Not every event matched its one subscription: the figures mean nothing."""


@dataclass(frozen=True)
class Plan:
    """At how many subscriptions to measure, and how many matches."""

    sizes: Sequence[int] = (*SIZES, MANY)
    matches: int = MATCHES
    seconds: float = SECONDS


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name. Raises Disagreement."""
    before = reference_ms()
    found = {}
    for number, example in enumerate(EXAMPLES, 1):
        row = TABLE_15[example.symbol]
        say(f"operator {number} of {len(EXAMPLES)}: {example.name}, {row.name}")
        found[example.name] = {"thesis": row.name, "sizes": [_measured(example, size, plan) for size in plan.sizes]}
    machine = {**description(), "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, "matches": plan.matches, "operators": found}


def _measured(example: Example, size: int, plan: Plan) -> dict[str, Any]:
    """Milliseconds for each match: of events that come one by one, and of events that come together."""
    standing = Standing.of(example, size)
    numbers = [size * place // plan.matches for place in range(plan.matches)]
    standing.match(numbers, refused=True)
    alone = standing.alone(numbers, plan.seconds)
    together = standing.timed(numbers)
    return {
        "subscriptions": size,
        "events": len(alone),
        "ms": round(mean(alone) * 1_000, 3),
        "together_ms": round(together / plan.matches * 1_000, 4),
        "thesis_ms": TABLE_15[example.symbol].mean(size),
    }


@dataclass
class Standing:
    """Subscriptions that differ in a number, in a matcher such as a worker has."""

    example: Example
    matcher: Matcher
    position: int

    @classmethod
    def of(cls, example: Example, size: int) -> Standing:
        made = [*changes(example, size)]
        return cls(example, Matcher.of(made), made[-1].position)

    def alone(self, numbers: Sequence[int], seconds: float) -> list[float]:
        """The seconds that each event takes as a batch of its own, of those that come until the time is over; one comes
        always. Raises Disagreement."""
        taken = list[float]()
        for number in numbers:
            taken.append(self.timed([number]))
            if sum(taken) > seconds:
                break
        return taken

    def timed(self, numbers: Sequence[int]) -> float:
        """The seconds that events with these numbers take, in one batch. Raises Disagreement."""
        entries = self._entries(numbers, refused=False)
        began = time.perf_counter()
        found = self.matcher.match(entries)
        seconds = time.perf_counter() - began
        agree(self.example.name, found.num_rows, len(numbers))
        return seconds

    def match(self, numbers: Sequence[int], *, refused: bool) -> None:
        """The same of events that must not match, or of those that must. Raises Disagreement."""
        found = self.matcher.match(self._entries(numbers, refused=refused))
        agree(self.example.name, found.num_rows, 0 if refused else len(numbers))

    def _entries(self, numbers: Sequence[int], *, refused: bool) -> pa.Table:
        rows = []
        for number in numbers:
            self.position += 1
            rows.append(_row(self.position, self.example.event(number, refused=refused)))
        return pa.Table.from_pylist(rows, schema=ENTRIES)


def agree(operator: str, found: int, right: int) -> None:
    if found != right:
        raise Disagreement(f"{operator}: {found} matches, not {right}")


def _row(position: int, text: str) -> dict[str, Any]:
    event = f"http://conference.example/event/{position}"
    headers = {"stream": "bench", "time": 0, "received": 0, "syntax": "application/n-quads"}
    return {"position": position, "event": event, "text": text, **headers}


def changes(example: Example, size: int) -> Iterator[RegistryChange]:
    """The ontology, the shape and the subscriptions, of which one alone is lifted."""
    text = ontology()
    loaded = LoadedOntology("conference", text, triples=text.count("\n") + 1, classes=0, properties=0)
    lifted = lift(document_query(example.document(_MARK)), solutions=False)
    place = lifted.constants.index(_number(_MARK))
    yield RegistryChange(1, ONTOLOGY, loaded.name, ontology_value(loaded))
    yield RegistryChange(2, SHAPE, lifted.shape.key, lifted.shape.to_value())
    for number in range(size):
        constants = (*lifted.constants[:place], _number(number), *lifted.constants[place + 1 :])
        made = Subscription(f"{number:08x}", None, Kind.SIGNAL, lifted.shape.key, constants)
        yield RegistryChange(3 + number, SUBSCRIPTION, made.id, subscription_to_value(made))


def _number(number: int) -> str:
    return f'"{number}"^^<{XSD}integer>'
