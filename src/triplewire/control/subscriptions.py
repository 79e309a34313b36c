"""Subscriptions: making, seeing and ending them. Pure over the registry port; it blocks, so call it from a thread."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triplewire.clock import Clock
from triplewire.config import limits
from triplewire.errors import BadRequest, BodyTooLarge, NotFound
from triplewire.matching.shapes import Shape, lift
from triplewire.model import START, Kind, Subscription
from triplewire.registry.ports import Registry
from triplewire.registry.streams import stream_name
from triplewire.registry.subscriptions import SHAPE, SUBSCRIPTION, from_change, to_value
from triplewire.sparql import parse_query

_FIELDS = frozenset({"sparql", "kind", "stream"})


@dataclass(frozen=True)
class Wish:
    """What a client asks for, checked."""

    sparql: str
    kind: Kind
    stream: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Wish:
        """Raises BadRequest for anything but an object with `sparql`, and perhaps `kind` and `stream`."""
        if not isinstance(value, dict):
            raise BadRequest('a subscription is a JSON object such as {"sparql": "SELECT …", "kind": "signal"}')
        if unknown := sorted(set(value) - _FIELDS):
            raise BadRequest(f"a subscription has no {', '.join(unknown)}; it has {', '.join(sorted(_FIELDS))}")
        stream = value.get("stream")
        if stream is not None and not isinstance(stream, str):
            raise BadRequest(f"stream must be the name of a stream, not {stream!r}")
        return cls(_sparql(value), _kind(value), None if stream is None else stream_name(stream))


@dataclass(frozen=True)
class Page:
    """Some subscriptions in the order in which they were made; `next` asks for those after them."""

    subscriptions: Sequence[Subscription]
    next: int | None


class Subscriptions:
    """The standing questions, as the registry holds them."""

    def __init__(self, registry: Registry, clock: Clock, new_id: Callable[[], str] = lambda: uuid.uuid4().hex) -> None:
        self._registry = registry
        self._clock = clock
        self._new_id = new_id

    def make(self, wishes: Sequence[Wish]) -> list[Subscription]:
        """All of them, or none: raises SparqlSyntax or Unsupported for the first that cannot be.

        Each sees every event whose publish is answered after this returns, and those at positions above its `since`.
        """
        made = [self._drafted(wish) for wish in wishes]
        shapes = {shape.key: shape for _, shape in made}
        missing = [key for key in shapes if self._registry.get(SHAPE, key) is None]
        entries: list[tuple[str, str, Mapping[str, Any] | None]] = [
            *((SHAPE, key, shapes[key].to_value()) for key in missing),
            *((SUBSCRIPTION, each.id, to_value(each)) for each, _ in made),
        ]
        positions = self._registry.put(entries)[len(missing) :]
        return [replace(each, since=at) for (each, _), at in zip(made, positions, strict=True)]

    def find(self, id: str) -> Subscription:
        """Raises NotFound for one that is not there or was ended."""
        change = self._registry.get(SUBSCRIPTION, id)
        if change is None:
            raise NotFound(f"there is no subscription {id}")
        return from_change(change)

    def page(self, after: int = START, limit: int = limits.PAGE) -> Page:
        """Those made after a position."""
        later = [change for change in self._registry.list(SUBSCRIPTION) if change.position > after]
        found = [from_change(change) for change in later[:limit]]
        return Page(found, found[-1].since if len(later) > limit else None)

    def end(self, id: str) -> None:
        """From here on it sees no more events. Raises NotFound for one that is not there."""
        self.find(id)
        self._registry.put([(SUBSCRIPTION, id, None)])

    def _drafted(self, wish: Wish) -> tuple[Subscription, Shape]:
        lifted = lift(parse_query(wish.sparql), solutions=wish.kind is Kind.BINDINGS, stream=wish.stream)
        draft = Subscription(
            id=self._new_id(),
            sparql=wish.sparql,
            kind=wish.kind,
            shape=lifted.shape.key,
            constants=lifted.constants,
            stream=wish.stream,
            created=self._clock.now(),
        )
        return draft, lifted.shape


def _sparql(value: Mapping[str, object]) -> str:
    text = value.get("sparql")
    if not isinstance(text, str) or not text.strip():
        raise BadRequest("sparql must hold the text of a query")
    if len(text.encode(errors="replace")) > limits.QUERY_BYTES:
        raise BodyTooLarge("the query", limits.QUERY_BYTES)
    return text


def _kind(value: Mapping[str, object]) -> Kind:
    given = value.get("kind", Kind.SIGNAL.value)
    known = [kind.value for kind in Kind]
    if given not in known:
        raise BadRequest(f"kind must be one of {', '.join(known)}, not {given!r}")
    return Kind(given)
