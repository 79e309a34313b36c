"""Places: where state is, in one of many workers; it is nothing but what came in.

A place takes what a batch sends it and gives what follows. All that it holds is what it was given, less what no longer
matters, so that a snapshot of it is a table of its inputs, and one that was lost is made again from the last snapshot
and what came since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Turn:
    """A batch: its number, the position at which it ends, and the time at which it was begun, in microseconds. A batch
    that is replayed is the same turn."""

    batch: int
    upto: int
    now: int


class Place(Protocol):
    """Not safe for threads. A pure function of its inputs and turns: equal ones give equal outputs."""

    def take(self, inputs: pa.Table, turn: Turn) -> pa.Table:
        """What follows from what a batch brings. Turns come in order."""

    def restore(self, inputs: pa.Table, turn: Turn) -> None:
        """Take in what was kept, or what came in a batch, without telling what follows."""

    def kept(self) -> pa.Table:
        """What still matters of all that came in: given to a new place by `restore`, it makes an equal one. Small
        things beside it stand in the metadata of its schema."""
