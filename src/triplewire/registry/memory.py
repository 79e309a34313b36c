"""The registry in memory: for tests and for embedding without a disk."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import orjson

from triplewire.model import START
from triplewire.registry.ports import Change
from triplewire.sequences import Positions

_POSITION = attrgetter("position")


class MemoryRegistry:
    """Named things, gone with the process. Given the log's positions it shares one order with it."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._changes: list[Change] = []
        self._things: dict[tuple[str, str], Change] = {}

    def put(self, entries: Sequence[tuple[str, str, Mapping[str, Any] | None]]) -> list[int]:
        with self._positions.taking(len(entries)) as taken:
            made = [Change(at, kind, key, _copy(value)) for at, (kind, key, value) in zip(taken, entries, strict=True)]
            self._changes.extend(made)
            # Replaced, not changed: a reader keeps the state that it has.
            self._things = _applied(self._things, made)
        return list(taken)

    def get(self, kind: str, key: str) -> Change | None:
        return self._things.get((kind, key))

    def list(
        self, kind: str, *, after: int = START, below: str | None = None, limit: int | None = None
    ) -> Sequence[Change]:
        found = [each for each in self._things.values() if each.kind == kind and each.position > after]
        asked = [each for each in found if below is None or each.key < below]
        return sorted(asked, key=_POSITION)[:limit]

    def changes(self, after: int, upto: int, most: int | None = None) -> Sequence[Change]:
        first = bisect_right(self._changes, after, key=_POSITION)
        last = bisect_right(self._changes, upto, key=_POSITION)
        return self._changes[first : last if most is None else min(last, first + most)]

    def blot(self, position: int, value: Mapping[str, Any]) -> None:
        with self._positions.taking(0):
            self._changes = [_blotted(each, value) if each.position == position else each for each in self._changes]
            self._things = _applied({}, self._changes)


def _applied(things: Mapping[tuple[str, str], Change], made: Sequence[Change]) -> dict[tuple[str, str], Change]:
    newest = {**things, **{(change.kind, change.key): change for change in made}}
    return {name: change for name, change in newest.items() if change.value is not None}


def _blotted(change: Change, value: Mapping[str, Any]) -> Change:
    return replace(change, value=_copy(value))


def _copy(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What a reader of a stored value would get: plain JSON, detached from the writer's own."""
    return None if value is None else orjson.loads(orjson.dumps(dict(value)))
