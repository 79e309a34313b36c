"""The registry of `bench match`: subscriptions that stand in a real file, as workers open it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import overload

from triplewire.bench.match_counts import Members
from triplewire.bench.match_templates import Question
from triplewire.bench.match_workloads import Chosen
from triplewire.config import Settings
from triplewire.model import Subscription
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.ports import JobPorts
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology
from triplewire.storage.registry.ontologies import ontology_to_value as ontology_value
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

CHUNK = 20_000
"""Subscriptions that are put in one transaction."""


@dataclass(frozen=True)
class Standing(Sequence[Subscription]):
    """The subscriptions of a workload as they stand in a registry. They are made again when they are looked at: a
    million of them would take more memory than what is measured."""

    chosen: Chosen
    first: int
    """The position of the first; the others follow without a gap."""
    shapes: int
    ports: JobPorts

    @property
    def last(self) -> int:
        return self.first + len(self) - 1

    @cached_property
    def members(self) -> Members:
        """Whom the matches of groups concern."""
        return Members.of(self, (each.shape for each in self.chosen.workload.templates))

    def questions(self) -> Iterator[Question]:
        return map(self.chosen.workload.question, range(len(self)))

    def __len__(self) -> int:
        return self.chosen.subscriptions

    @overload
    def __getitem__(self, index: int) -> Subscription: ...

    @overload
    def __getitem__(self, index: slice) -> list[Subscription]: ...

    def __getitem__(self, index: int | slice) -> Subscription | list[Subscription]:
        if isinstance(index, slice):
            return [self._made(number) for number in range(len(self))[index]]
        return self._made(range(len(self))[index])

    def _made(self, number: int) -> Subscription:
        return self.chosen.workload.question(number).subscription(f"{number:08x}", self.first + number)


def stand(chosen: Chosen, directory: Path) -> Standing:
    """Put all of them into a registry of their own."""
    ports = pipeline_ports(Settings(data=directory))
    directory.mkdir(parents=True)
    registry = ports.open_registry()
    shapes = {each.shape.key: each.shape for each in chosen.workload.templates}
    told = [] if chosen.ontology is None else [(ONTOLOGY, "bench", ontology_value(_loaded(chosen.ontology)))]
    positions = registry.put([*told, *((SHAPE, key, shape.to_value()) for key, shape in shapes.items())])
    standing = Standing(chosen, positions[-1] + 1, len(shapes), ports)
    for first in range(0, len(standing), CHUNK):
        registry.put([(SUBSCRIPTION, each.id, subscription_to_value(each)) for each in standing[first : first + CHUNK]])
    return standing


def _loaded(text: str) -> LoadedOntology:
    return LoadedOntology("bench", text, triples=text.count("\n") + 1, classes=0, properties=0)
