"""Promises: what streams promise to those who read their history, from what was set and what was said of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from triplewire.edge.ldes.statements import Promise
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.streams import ValidationMode, read_description, read_validation_mode


@dataclass(frozen=True)
class Promises:
    """Of any stream."""

    registry: Registry
    ages: Callable[[str], float | None]

    def __call__(self, stream: str) -> Promise:
        # Where events are merely marked, not all of them conform.
        conform = read_validation_mode(self.registry, stream) is ValidationMode.REFUSE
        return Promise(self.ages(stream), read_description(self.registry, stream).version_of, conform)
