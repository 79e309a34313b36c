"""Runs: numbers that are remembered in sorted arrays, to which more come all the time.

To look for some thousand among twenty million takes a search in each of a dozen arrays. A table without an index is
read whole for it, each time.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint64]]
Marks: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

LONGEST = 4_194_304
"""Numbers of a run from which on it stays as it is: while two become one there is room for both, 64 MB at worst."""


class Runs:
    """Each is more than twice as long as the one after it, or so long that it stays: a number is moved as often as its
    run has doubled."""

    def __init__(self) -> None:
        self._runs: list[Numbers] = []

    def having(self, numbers: Numbers) -> Marks:
        """Which of the numbers are there. They are found the sooner if they are in order."""
        found = np.zeros(len(numbers), np.bool_)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, numbers), len(run) - 1)
            found |= run[places] == numbers
        return found

    def add(self, numbers: Numbers) -> None:
        """Numbers in order."""
        if len(numbers):
            self._runs.append(numbers)
        while len(self._runs) > 1 and len(self._runs[-2]) < min(2 * len(self._runs[-1]), LONGEST):
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            # What is sorted in stretches is sorted in one pass over it.
            merged.sort(kind="stable")
            self._runs.append(merged)
