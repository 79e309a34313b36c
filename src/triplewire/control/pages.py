"""Pages: some of what somebody has, in the order in which it was made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from triplewire.storage.registry.ports import Registry, RegistryChange

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Page(Generic[Thing]):
    """Some of them; `next` asks for those after them."""

    things: Sequence[Thing]
    next: int | None


def paged(
    registry: Registry, kind: str, own: str | None, after: int, limit: int
) -> tuple[list[RegistryChange], int | None]:
    """The first of a kind after a position, and from where on there are more. `own` is the kind of the entries by which
    those of somebody are found; None is for all of them."""
    found = registry.list(own or kind, after=after, limit=limit + 1)
    following = found[limit - 1].position if len(found) > limit else None
    if own is None:
        return [*found[:limit]], following
    changes = (registry.get(kind, each.key) for each in found[:limit])
    return [each for each in changes if each is not None], following
