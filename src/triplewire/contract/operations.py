"""Operations: what a route does, for whom, with what it is asked and how it answers.

An operation is a value, written down in `contract/catalogue`; a handler says which one it serves:

    @serves(publishing.PUBLISH)
    async def publish(self, request): …

The door looks there for the verb that a caller needs; the documents for machines are written from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from triplewire.access import Verb

Handler = TypeVar("Handler", bound=Callable[..., Any])

PATH = "path"
QUERY = "query"
HEADER = "header"


@dataclass(frozen=True)
class Parameter:
    """Something that a request can say outside of its body."""

    name: str
    description: str
    where: str = QUERY
    schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    required: bool = False


@dataclass(frozen=True)
class Content:
    """A body, of a request or an answer: in one of some media types, each with the name of a schema or none."""

    types: Mapping[str, str | None] = field(default_factory=dict)
    description: str = ""
    headers: tuple[str, ...] = ()
    """Those of an answer that say more than how it is written."""


@dataclass(frozen=True)
class Operation:
    """What a route does. Somebody with any of the verbs may ask for it; without verbs everyone may."""

    id: str
    summary: str
    verbs: tuple[Verb, ...] = ()
    stream: str | None = None
    """The part of the path that names the stream for which the verb is needed."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    body: Content | None = None
    answers: Mapping[int, Content] = field(default_factory=dict)
    problems: tuple[int, ...] = ()
    """The statuses of problem documents that it answers with, besides those of the door."""
    tells: tuple[str, ...] = ()
    """The messages, by their schemas, that clients are told where the answer is a channel and does not end."""
    hears: tuple[str, ...] = ()
    """The messages that clients may say meanwhile."""

    @property
    def lasts(self) -> bool:
        """Whether the answer is a channel, which does not end."""
        return bool(self.tells or self.hears)


def serves(operation: Operation) -> Callable[[Handler], Handler]:
    """Marks the handler of an operation."""

    def mark(handler: Handler) -> Handler:
        handler.operation = operation  # type: ignore[attr-defined]
        return handler

    return mark


def operation_of(handler: object) -> Operation | None:
    """What a handler serves; None for one that says nothing, such as the framework's own for unknown addresses."""
    found = getattr(handler, "operation", None)
    return found if isinstance(found, Operation) else None
