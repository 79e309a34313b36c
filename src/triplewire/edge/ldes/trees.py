"""Trees: the way from the first node of a stream's history to any of its leaves, in few steps.

```
view            1/0                     1/1  …            a node names LEAF_FAN others at most
 ├── 1/0 ──▶     ├── 0/0   0/1 … 0/99    ├── 0/100 …      leaves have the events
 └── 1/1 ──▶     ⋮
```

A node is complete when all leaves below it are full; then it never changes again. The root is where it always is;
when
leaves outgrow it, what it named is named by a node below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triplewire.config import limits
from triplewire.storage.log.ports import Segment, StreamVolume

Leaves = Callable[[Sequence[int]], Sequence[Segment]]
"""Gives the full leaves of a stream by their numbers."""


@dataclass(frozen=True)
class Node:
    """The `number`-th node of a level; level 0 has the leaves."""

    level: int
    number: int

    def __str__(self) -> str:
        return f"{self.level}/{self.number}"


@dataclass(frozen=True)
class Branch:
    """A node below another, with the times between which its events were received, as far as that can be said."""

    node: Node
    since: int | None
    until: int | None


@dataclass(frozen=True)
class Tree:
    """Over the leaves of a stream, as many as there are."""

    volume: StreamVolume

    @property
    def root(self) -> Node:
        level = 1
        while limits.LEAF_FAN**level < self.volume.leaves:
            level += 1
        return Node(level, 0)

    def has(self, node: Node) -> bool:
        """Whether there is such a node below the root."""
        return 0 <= node.level < self.root.level and node.number >= 0 and self._first(node) < self.volume.leaves

    def is_complete(self, node: Node) -> bool:
        return self._end(node) <= self.volume.closed

    def last(self, node: Node) -> int:
        """The number of the last leaf below a node."""
        return min(self._end(node), self.volume.leaves) - 1

    def branches(self, node: Node, leaves: Leaves, lost: int) -> list[Branch]:
        """What a node names, without that of which all is lost up to a position."""
        below = [each for each in self._below(node) if self._first(each) < self.volume.leaves]
        ends = {number for each in below for number in (self._first(each), self.last(each))}
        found = {leaf.number: leaf for leaf in leaves(sorted(ends))}
        if self.volume.open is not None:
            found[self.volume.open.number] = self.volume.open
        return [self._branch(each, found) for each in below if found[self.last(each)].last > lost]

    def _branch(self, node: Node, leaves: dict[int, Segment]) -> Branch:
        first, last = leaves[self._first(node)], leaves[self.last(node)]
        # Where the clock went back, an event may have been received before the first.
        if first.number <= self.volume.rough:
            return Branch(node, None, None)
        return Branch(node, first.since, last.until if self.is_complete(node) else None)

    def _below(self, node: Node) -> list[Node]:
        start = node.number * limits.LEAF_FAN
        return [Node(node.level - 1, number) for number in range(start, start + limits.LEAF_FAN)]

    def _first(self, node: Node) -> int:
        return int(node.number * limits.LEAF_FAN**node.level)

    def _end(self, node: Node) -> int:
        return int((node.number + 1) * limits.LEAF_FAN**node.level)
