"""Structures: what is left of an unbounded query when its constants are lifted out.

Predicates stay, because the network tells triples apart by them first. What is done with a combination of triples once
it is whole, filters and what they compute, is the *tail*; its constants stay in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from triplewire.sparql import Const, Expression, Node, Param, Pattern
from triplewire.sparql.serials import from_value, to_value

STRUCTURE = "structure"
"""The kind of registry entries that hold them, by key."""


@dataclass(frozen=True)
class Structure:
    """Patterns with parameters in the place of constants, filters over their variables, and what is told."""

    patterns: tuple[Pattern, ...]
    filters: tuple[Expression, ...] = ()
    projection: tuple[str, ...] = ()
    distinct: bool = False
    template: tuple[Pattern, ...] = ()
    """What is made of each answer, where it is CONSTRUCT that asks."""

    @cached_property
    def key(self) -> str:
        text = json.dumps(self.to_value(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_value(self) -> dict[str, Any]:
        return {
            "patterns": to_value(self.patterns),
            "filters": to_value(self.filters),
            "projection": list(self.projection),
            "distinct": self.distinct,
            "template": to_value(self.template),
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Structure:
        return cls(
            patterns=from_value(value["patterns"]),
            filters=from_value(value["filters"]),
            projection=tuple(value["projection"]),
            distinct=value["distinct"],
            template=from_value(value["template"]),
        )


@dataclass(frozen=True)
class Lifted:
    """A query taken apart: `constants[i]` is the term that stands for `Param(i)` in the structure."""

    structure: Structure
    constants: tuple[str, ...]


def lift(asked: Structure) -> Lifted:
    """Constants as subjects and objects become parameters, equal ones the same."""
    lifting = _Lifting()
    patterns = [
        Pattern(lifting.node(each.subject), each.predicate, lifting.node(each.object)) for each in asked.patterns
    ]
    return Lifted(replace(asked, patterns=tuple(patterns)), tuple(lifting.constants))


@dataclass
class _Lifting:
    constants: dict[str, int] = field(default_factory=dict)

    def node(self, node: Node) -> Node:
        if not isinstance(node, Const):
            return node
        return Param(self.constants.setdefault(node.term, len(self.constants)))


def group_of(lifted: Lifted, *others: object) -> int:
    """The number of what is asked: the same for queries that differ in nothing but where they were registered. `others`
    is what else tells them apart."""
    text = json.dumps([lifted.structure.key, lifted.constants, *others], separators=(",", ":"), default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
