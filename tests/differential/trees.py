"""Trees: queries as they are generated, and their two spellings, as it is asked and as the oracle is asked.

`GRAPH` is spelled out for the oracle as its definition says: the group on each named graph, joined with the name.
pyoxigraph instead gives the variable to each pattern of the group, so that a group without patterns, a sub-query, or
a MINUS without common variables goes astray. Paths are spelled out for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from tests.differential import paths
from tests.differential.paths import Path


@dataclass(frozen=True)
class Block:
    """Triples that may share the blank nodes `_:b` and `_:e`, which no other block may. One node is a variable."""

    text: str


@dataclass(frozen=True)
class Within:
    """GRAPH: `name` is a variable or an IRI."""

    name: str
    body: Tree


@dataclass(frozen=True)
class Reach:
    """A path. One end at least is a variable."""

    subject: str
    path: Path
    target: str


Tree: TypeAlias = "str | Block | Within | Reach | tuple[Tree, ...]"


class Asked:
    """The query as it is."""

    def __init__(self) -> None:
        self.numbers = count()

    def spelled(self, tree: Tree) -> str:
        if isinstance(tree, str):
            return tree
        if isinstance(tree, Block):
            return self.block(tree)
        if isinstance(tree, Within):
            return self.within(tree)
        if isinstance(tree, Reach):
            return self.reach(tree)
        return " ".join(map(self.spelled, tree))

    def block(self, tree: Block) -> str:
        number = next(self.numbers)
        return tree.text.replace("_:b", f"_:b{number}").replace("_:e", f"_:e{number}")

    def reach(self, tree: Reach) -> str:
        return self.spelled(Block(f"{tree.subject} {paths.spelled(tree.path)} {tree.target} ."))

    def within(self, tree: Within) -> str:
        return f"GRAPH {tree.name} {{ {self.spelled(tree.body)} }}"


class Defined(Asked):
    """The query in which GRAPH stands for its definition, on these named graphs."""

    def __init__(self, graphs: Sequence[str]) -> None:
        super().__init__()
        self._graphs = graphs

    def within(self, tree: Within) -> str:
        if not tree.name.startswith("?"):
            # A graph that is not there has no solutions, not even the empty one.
            missing = "" if tree.name in self._graphs else "FILTER(false)"
            return f"{{ GRAPH {tree.name} {{ {self.spelled(tree.body)} }} {missing} }}"
        if not self._graphs:
            return f"{{ {self.spelled(tree.body)} VALUES {tree.name} {{ UNDEF }} FILTER(false) }}"
        return "{ " + " UNION ".join(self._on(tree, graph) for graph in self._graphs) + " }"

    def block(self, tree: Block) -> str:
        """In a sub-query, if there are blank nodes: as COUNT(DISTINCT *) shows, they are no part of a solution."""
        text = super().block(tree)
        names = dict.fromkeys(re.findall(r"\?\w+", text))
        return f"{{ SELECT {' '.join(names)} {{ {text} }} }}" if "_:" in text else text

    def reach(self, tree: Reach) -> str:
        """In a sub-query, so that what is between the ends stays between them."""
        fresh = (f"?between{number}" for number in self.numbers)
        ends = [next(fresh) if node.startswith("_:") else node for node in (tree.subject, tree.target)]
        shown = dict.fromkeys(node for node in (tree.subject, tree.target) if node.startswith("?"))
        return f"{{ SELECT {' '.join(shown)} {{ {paths.defined(ends[0], tree.path, ends[1], fresh)} }} }}"

    def _on(self, tree: Within, graph: str) -> str:
        return f"{{ GRAPH {graph} {{ {self.spelled(tree.body)} }} VALUES {tree.name} {{ {graph} }} }}"
