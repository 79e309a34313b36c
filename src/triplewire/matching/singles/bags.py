"""Bags: all values of a predicate in one event together, paired one to one with the elements that are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TypeAlias

from triplewire.matching.singles.runs import Operate, Row, Run, Slots, Test, Unknown
from triplewire.model.terms import RDF
from triplewire.sparql.algebra import Bag
from triplewire.sparql.compiler.scans import HEADER_PREDICATES
from triplewire.sparql.traversal import mentioned_variables

_FIRST, _REST, _NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))
Cells: TypeAlias = Mapping[str, Sequence[str]]


def bagged(slots: Slots, bag: Bag, tests: Sequence[Test]) -> Operate:
    """The solution that is given, if the bag is as it must be. `tests` are the conditions of its elements."""
    if bag.predicate.term in HEADER_PREDICATES or mentioned_variables(bag):
        raise Unknown(bag)
    predicate, place, size = bag.predicate.term, slots.variable(bag.member), len(tests)
    all_values, all_elements = bag.relation != "#>", bag.relation != "#<"

    def found(run: Run, row: Row) -> list[Row]:
        if predicate not in run.event.by:
            return []
        values = members(run, predicate)
        count = len(values)
        if (all_values and count > size) or (all_elements and count < size):
            return []
        run.spend(count * max(1, size))
        masks = _masks(run, row, place, values, tests)
        return [row] if paired(masks if all_values else _turned(masks, size)) else []

    return found


def members(run: Run, predicate: str) -> list[str]:
    """The objects of a predicate, once for each triple, with the members of those that are lists in their places."""
    objects = [quad[2] for quad in run.event.by.get(predicate, ())]
    if _FIRST not in run.event.by:
        return [each for each in objects if each != _NIL]
    holds, leads = _cells(run, _FIRST), _cells(run, _REST)
    return [value for each in objects for value in _listed(run, each, holds, leads)]


def _cells(run: Run, predicate: str) -> dict[str, list[str]]:
    """What each cell holds, or is followed by."""
    quads = run.event.by.get(predicate, ())
    run.spend(len(quads))
    found = dict[str, list[str]]()
    for subject, _, object_, _ in quads:
        found.setdefault(subject, []).append(object_)
    return found


def _listed(run: Run, start: str, holds: Cells, leads: Cells) -> list[str]:
    """What a cell holds, and all those to which it leads, each of these once; what is no cell by itself."""
    cells, edge = dict[str, None](), [start]
    while edge:
        onward = [each for cell in edge for each in leads.get(cell, ())]
        run.spend(len(onward))
        edge = [*dict.fromkeys(each for each in onward if each not in cells)]
        cells |= dict.fromkeys(edge)
    found = [value for cell in (start, *cells) for value in holds.get(cell, ())]
    run.spend(len(found))
    return found or [each for each in (start,) if each != _NIL]


def _masks(run: Run, row: Row, place: int, values: Sequence[str], tests: Sequence[Test]) -> list[int]:
    """For each value a bit for each element that it may be paired with."""
    bits, made, known = [(1 << at, test) for at, test in enumerate(tests)], row.copy(), dict[str, int]()
    for value in values:
        if value not in known:
            made[place] = value
            known[value] = sum([bit for bit, test in bits if test(run, made)])
    return [known[value] for value in values]


def _turned(masks: Sequence[int], size: int) -> list[int]:
    """For each element a bit for each value."""
    return [sum([1 << at for at, mask in enumerate(masks) if mask >> element & 1]) for element in range(size)]


def paired(masks: Sequence[int]) -> bool:
    """Whether each can have a bit of its own, by augmenting paths. There are as many at most as a filter has elements,
    so that paths are short."""
    owners = dict[int, int]()

    def placed(at: int, free: int) -> int:
        """Place one, and what has to give way, on bits that are still free to try; which of them are left, or -1."""
        while wanted := masks[at] & free:
            bit = wanted & -wanted
            free ^= bit
            free = placed(owners[bit], free) if bit in owners else -1
            if free == -1:
                owners[bit] = at
                return -1
        return free

    return all(masks) and all(placed(at, reduce(or_, masks)) == -1 for at in range(len(masks)))
