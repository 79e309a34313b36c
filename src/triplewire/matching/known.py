"""Known shapes: what the index does for each, as a worker finds out when it needs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from triplewire.access.scopes import ALL
from triplewire.access.sights import Sight
from triplewire.matching.index import Guards, Memberships
from triplewire.matching.index.store import Addition
from triplewire.matching.shapes import Shape
from triplewire.matching.singles import Single, single_of
from triplewire.storage.registry.ports import RegistryChange


class _Undecided(Memberships):
    """Of a shape that the index does not decide, though it could if it were about more of an event."""

    def __init__(self, shape: Shape) -> None:
        self.program = None
        self._key = shape.key


def memberships_of(shape: Shape) -> Memberships:
    """There are none where a shape is about what is in sight, and that is of most events a part: the index looks at
    whole ones."""
    return Memberships(shape) if shape.sight is None or is_rare(shape.sight) else _Undecided(shape)


def is_rare(sight: Sight) -> bool:
    """Is something out of sight only of those events that have one of some classes?"""
    return sight.classes.allowed == (ALL,) and sight.predicates.is_all


@dataclass(frozen=True)
class Known:
    """A shape as it was registered. What follows from it is made when it is first asked for: most workers only need
    to know that it is there."""

    change: RegistryChange

    @cached_property
    def memberships(self) -> Memberships:
        return memberships_of(self._shape)

    @cached_property
    def guards(self) -> Guards:
        return Guards(self._shape)

    @cached_property
    def single(self) -> Single | None:
        """How it is decided one by one; None where it is not."""
        return single_of(self._shape)

    @property
    def sight(self) -> Sight | None:
        """What of events it is asked of; None is everything."""
        return self._shape.sight if self.change.value and "sight" in self.change.value else None

    @property
    def additions(self) -> list[Addition]:
        """What the index is to have for it."""
        programs = ((self.memberships.program, False), (self.guards.program, True))
        return [Addition(each, self.change.position, guards) for each, guards in programs if each is not None]

    @cached_property
    def _shape(self) -> Shape:
        assert self.change.value is not None, "shapes are not removed"
        return Shape.from_value(self.change.value)
