"""Sieves: what a client wants to hear of a stream, said in the address that it listens to.

```
GET /streams/s?source=…&application=…&vocabulary=…&ask=…&filter=…&filter.name=…
```

They are values: two that ask for the same are equal, so that they are one key of a room and are evaluated once,
however
many listen.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from triplewire.access.sights import Sight
from triplewire.matching.shapes import LiftedShape

FIELDS = ("source", "application", "vocabulary", "ask", "filter")
"""The parameters of an address that make up a sieve."""


@dataclass(frozen=True)
class Ask:
    """A query that an event passes if it has a solution on it. Those that ask the same are equal, whatever their words
    and the names of their variables."""

    shape: str
    """Its key."""
    constants: tuple[str, ...]
    lifted: LiftedShape = field(compare=False, repr=False)


@dataclass(frozen=True)
class Chosen:
    """A filter of the deployment, by its name, with the parameters that it is made with, in order."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Sieve:
    """An event passes if it passes all that is said. Of several values any will do; a field without values says
    nothing. `vocabulary` has beginnings of IRIs: of some predicate or class of the event."""

    source: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    asks: tuple[Ask, ...] = ()
    filter: Chosen | None = None

    def __hash__(self) -> int:
        return self._hash

    @property
    def key(self) -> Hashable:
        """The same for equal ones, and nothing that holds them."""
        return self.source, self.application, self.vocabulary, self.asks, self.filter

    @cached_property
    def _hash(self) -> int:
        """It is looked up in every pass, and may hold hundreds of texts."""
        return hash(self.key)


EVERYTHING = Sieve()


@dataclass(frozen=True)
class Tap:
    """What listeners to a stream have in common: the stream, what they want to hear of it, and what of it they see;
    None is all."""

    stream: str
    sieve: Sieve | None = None
    sight: Sight | None = None
    query: str | None = None
    """The continuous query of which they hear the answers alone, by its id."""
