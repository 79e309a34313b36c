"""Sights as registry entries: what owners of subscriptions see, each kept once, under a name that follows from it."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import orjson

from triplewire.access.sights import Sight
from triplewire.config import limits
from triplewire.errors import NotFound
from triplewire.registry.ports import Registry

SIGHT = "sight"


@lru_cache(maxsize=limits.REMEMBERED_SIGHTS)
def name_of(sight: Sight) -> str:
    """The same for equal ones, in every process and at every time."""
    return hashlib.sha256(orjson.dumps(sight.to_json(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]


class Sights:
    """Those that the registry has, by name. Any thread may ask; it waits for the disk."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[str, Sight] = {}

    def find(self, name: str | None) -> Sight | None:
        """None, where everything is in sight. Raises NotFound."""
        if name is None:
            return None
        found = self._known.get(name)
        if found is None:
            change = self._registry.get(SIGHT, name)
            if change is None or change.value is None:
                raise NotFound(f"the sight {name} is not in the registry")
            if len(self._known) >= limits.REMEMBERED_SIGHTS:
                self._known = {}
            found = self._known[name] = Sight.from_json(change.value)
        return found

    def missing(self, sight: Sight) -> bool:
        """Whether the registry does not have it yet."""
        return self._registry.get(SIGHT, name_of(sight)) is None
