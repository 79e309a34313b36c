"""Symmetries: constants of a shape that may stand in each other's places, in one order."""

from __future__ import annotations

from collections import Counter, defaultdict

from triplewire.config import limits
from triplewire.matching.shapes import Lifted, Shape
from triplewire.sparql import Const, Node, Param, Query
from triplewire.sparql.traversal import iterate_parts, replace_in_pattern


class Symmetries:
    """Remembers what is alike in shapes, by their keys. Any thread may use it."""

    def __init__(self, size: int = limits.REMEMBERED_SKELETONS) -> None:
        self._size = size
        self._alike: dict[str, tuple[tuple[int, ...], ...]] = {}

    def settled(self, lifted: Lifted) -> Lifted:
        """The same, with constants that may be swapped in their own order."""
        groups = self._groups(lifted.shape)
        if not groups:
            return lifted
        constants = list(lifted.constants)
        for group in groups:
            for index, term in zip(group, sorted(lifted.constants[each] for each in group), strict=True):
                constants[index] = term
        return Lifted(lifted.shape, tuple(constants))

    def _groups(self, shape: Shape) -> tuple[tuple[int, ...], ...]:
        found = self._alike.get(shape.key)
        if found is None:
            if len(self._alike) >= self._size:
                self._alike = {}
            found = self._alike[shape.key] = interchangeable(shape)
        return found


def interchangeable(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Groups of parameters of which any two may be swapped without a change to what is asked: each stands alone in a
    pattern that is, but for it, the same as those of the others."""
    if isinstance(shape.query, Query):
        return ()
    places: defaultdict[str, list[int]] = defaultdict(list)
    for pattern in shape.query.patterns:
        found = [node.index for node in (pattern.subject, pattern.object, pattern.graph) if isinstance(node, Param)]
        if len(found) == 1:
            places[repr(replace_in_pattern(pattern, _blanked))].append(found[0])
    used = Counter(part.index for part in iterate_parts((shape.query, shape.template)) if isinstance(part, Param))
    alike = ([index for index in each if used[index] == 1] for each in places.values())
    return tuple(tuple(sorted(each)) for each in alike if len(each) > 1)


def _blanked(node: Node) -> Node:
    return Const("") if isinstance(node, Param) else node
