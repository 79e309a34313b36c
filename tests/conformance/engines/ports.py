"""Ports: what an engine does for the harness."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from tests.conformance.datasets import Dataset
from tests.conformance.results import Answer

ENGINES = ("duckdb", "spark", "oxigraph")


class Refused(Exception):
    """The text is no query."""


class Engine(Protocol):
    """Cases come one after the other: loading replaces what was loaded before."""

    regimes: frozenset[str]
    """The entailment regimes, by local name, that it answers under."""

    def parse(self, text: str, base: str) -> None:
        """Raises Refused for a text that is no query; what it understands but does not run is one."""

    def load(self, dataset: Dataset) -> None: ...

    def run(self, text: str, base: str) -> Answer:
        """The answer on what was loaded last."""

    def close(self) -> None:
        """Give back what it holds."""


def start(name: str) -> Engine:
    """Start one of `ENGINES`."""
    engine: Engine = import_module(f"tests.conformance.engines.{name}").start()
    return engine
