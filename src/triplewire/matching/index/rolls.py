"""Rolls: how many members a group has, and what is easiest to pass of their thresholds."""

from __future__ import annotations

import numpy as np

from triplewire.native.arrays import Int32, Records
from triplewire.native.functions import compiled


@compiled
def let_join(groups: Records, numbers: Int32, bounds: np.ndarray, above: bool) -> None:
    """One member more for each number; a threshold that is easier to pass than the others counts for all."""
    for each in range(len(numbers)):
        group = groups[numbers[each]]
        group.bound = min(group.bound, bounds[each]) if above else max(group.bound, bounds[each])
        group.members += 1


@compiled
def let_go(groups: Records, ended: Records) -> None:
    """One member less for each that has ended."""
    for each in range(len(ended)):
        groups[ended[each].group].members -= 1
