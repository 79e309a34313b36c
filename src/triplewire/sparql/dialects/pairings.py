"""Pairings: the most members of a bag that can be paired with elements, one to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def paired(lists: Any) -> Any:  # noqa: ANN401 - a column of Arrow; pyarrow is loaded when the function runs
    """For each list of masks, as `pairs`; a mask that is NULL stands for nothing."""
    import pyarrow

    found = (None if masks is None else pairs([each for each in masks if each]) for masks in lists.to_pylist())
    return pyarrow.array(found, pyarrow.int64())


def pairs(masks: Sequence[int]) -> int:
    """How many members can be paired at most: bit j of a member's mask says that it may be paired with element j.

    By augmenting paths: a member without a free element takes one whose member can move on to another.
    """
    owners: dict[int, int] = {}
    return sum(_placed(member, masks, owners, [0]) for member in range(len(masks)))


def _placed(member: int, masks: Sequence[int], owners: dict[int, int], tried: list[int]) -> bool:
    """Finds an element for a member, and moves others on for it. `tried` holds the elements that need no second look;
    the depth is at most the number of elements."""
    while left := masks[member] & ~tried[0]:
        bit = left & -left
        tried[0] |= bit
        if bit not in owners or _placed(owners[bit], masks, owners, tried):
            owners[bit] = member
            return True
    return False
