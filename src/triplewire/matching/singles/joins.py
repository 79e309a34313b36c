"""Joins of two lists of solutions, where neither side can go on from the other."""

from __future__ import annotations

from collections.abc import Sequence

from triplewire.matching.singles.runs import Operate, Row, Run, Test


def joined(left: Operate, right: Operate, shared: Sequence[int], places: Sequence[int]) -> Operate:
    """All pairs of compatible solutions. `shared` are the places that both may bind, `places` all of the right."""

    def found(run: Run, row: Row) -> list[Row]:
        ones = left(run, row)
        others = right(run, row) if ones else []
        run.spend(len(ones) * len(others))
        return [_together(one, other, places) for one in ones for other in others if compatible(one, other, shared)]

    return found


def left_joined(
    left: Operate, right: Operate, shared: Sequence[int], places: Sequence[int], tests: Sequence[Test]
) -> Operate:
    """Every solution of the left, with each compatible one of the right for which the tests hold, or alone."""

    def found(run: Run, row: Row) -> list[Row]:
        ones = left(run, row)
        others = right(run, row) if ones else []
        run.spend(len(ones) * len(others))
        rows = list[Row]()
        for one in ones:
            pairs = (_together(one, other, places) for other in others if compatible(one, other, shared))
            rows += [pair for pair in pairs if all(test(run, pair) for test in tests)] or [one]
        return rows

    return found


def minus(left: Operate, right: Operate, shared: Sequence[int]) -> Operate:
    """The solutions of the left with which none of the right is compatible and has a variable in common."""

    def found(run: Run, row: Row) -> list[Row]:
        ones = left(run, row)
        others = right(run, row) if ones else []
        run.spend(len(ones) * len(others))
        return [one for one in ones if not any(_removes(one, other, shared) for other in others)]

    return found


def compatible(one: Row, other: Row, shared: Sequence[int]) -> bool:
    """Do they agree on what both bind?"""
    for place in shared:
        here, there = one[place], other[place]
        if here is not None and there is not None and here != there:
            return False
    return True


def _removes(one: Row, other: Row, shared: Sequence[int]) -> bool:
    common = any(one[place] is not None and other[place] is not None for place in shared)
    return common and compatible(one, other, shared)


def _together(one: Row, other: Row, places: Sequence[int]) -> Row:
    made = one.copy()
    for place in places:
        if made[place] is None:
            made[place] = other[place]
    return made
