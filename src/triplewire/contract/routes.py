"""Routes as the documents see them: a method, a path, and the operation that is served there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from triplewire.contract.operations import Operation, operation_of

_PATTERN = re.compile(r":[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
"""What a part of a path must look like, which is the router's business."""


class Served(Protocol):
    """What is read off a route of the web framework."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def handler(self) -> object: ...


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    operation: Operation


def described(served: Iterable[Served]) -> Iterator[Route]:
    """Those that say what they serve, in order of path, as documents tell them."""
    for each in sorted(served, key=lambda route: (route.path, route.method)):
        operation = operation_of(each.handler)
        if operation is not None:
            yield Route(each.method, _PATTERN.sub("}", each.path), operation)
