"""Promises: what streams promise to those who read their history, from what was set and what was said of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triplewire.edge.ldes.statements import Promise
from triplewire.registry.abouts import about_of
from triplewire.registry.ports import Registry
from triplewire.registry.shapes import Mode, mode_of


@dataclass(frozen=True)
class Promises:
    """Of any stream."""

    registry: Registry
    ages: Callable[[str], float | None]

    def __call__(self, stream: str) -> Promise:
        # Where events are merely marked, not all of them conform.
        conform = mode_of(self.registry, stream) is Mode.REFUSE
        return Promise(self.ages(stream), about_of(self.registry, stream).version_of, conform)
