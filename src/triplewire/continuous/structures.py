"""Query structures: unbounded continuous queries with their constants lifted out as parameters.

Predicates stay, because the join network tells triples apart by them first. Filters and computed values are applied to
complete joins by the projection; their constants stay in it.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from triplewire.sparql import Pattern
from triplewire.sparql.conjunctions import RowStep
from triplewire.sparql.decomposition import split_unbounded
from triplewire.sparql.parameters import ConstantLifter
from triplewire.sparql.rspql import Registration
from triplewire.sparql.serialization import algebra_from_json, algebra_to_json

STRUCTURE = "structure"
"""The kind of registry entries that hold them, by key."""


@dataclass(frozen=True)
class QueryStructure:
    """Patterns with parameters instead of constants, the steps that compute and filter, and the projection."""

    patterns: tuple[Pattern, ...]
    steps: tuple[RowStep, ...] = ()
    projection: tuple[str, ...] = ()
    distinct: bool = False
    template: tuple[Pattern, ...] = ()
    """The template of a CONSTRUCT."""

    @cached_property
    def key(self) -> str:
        text = json.dumps(self.to_value(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_value(self) -> dict[str, Any]:
        return {
            "patterns": algebra_to_json(self.patterns),
            "steps": algebra_to_json(self.steps),
            "projection": list(self.projection),
            "distinct": self.distinct,
            "template": algebra_to_json(self.template),
        }

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> QueryStructure:
        return cls(
            patterns=algebra_from_json(value["patterns"]),
            steps=algebra_from_json(value["steps"]),
            projection=tuple(value["projection"]),
            distinct=value["distinct"],
            template=algebra_from_json(value["template"]),
        )


@dataclass(frozen=True)
class LiftedStructure:
    """A query taken apart: `constants[i]` is the term that stands for `Param(i)` in the structure."""

    structure: QueryStructure
    constants: tuple[str, ...]


def lift_constants(asked: QueryStructure) -> LiftedStructure:
    """Constants as subjects and objects become parameters, equal ones the same."""
    lifting = ConstantLifter(shared=True)
    patterns = tuple(lifting.pattern(each) for each in asked.patterns)
    return LiftedStructure(replace(asked, patterns=patterns), tuple(lifting.constants))


@dataclass(frozen=True)
class GroupedQuery:
    """An unbounded query as it is registered: its group, and the variables that it reports."""

    group: int
    variables: tuple[str, ...]
    structure: QueryStructure
    constants: tuple[str, ...]


def group_query(
    lifted: LiftedStructure,
    *,
    streams: tuple[str, ...] | None = None,
    within: float | None = None,
    span: int | None = None,
    begins: int | None = None,
) -> GroupedQuery:
    """Return a query as it is to be registered. One with set semantics, with published answers or with a backfill has
    a group of its own, because its state is."""
    private = lifted.structure.distinct or lifted.structure.template or begins is not None
    own = uuid.uuid4().hex if private else None
    group = group_number(lifted, streams, within, span, own)
    return GroupedQuery(group, lifted.structure.projection, lifted.structure, lifted.constants)


def query_structure(registration: Registration, *, distinct: bool) -> QueryStructure:
    """Return the structure of a registration, with its constants. Raises Unsupported for one that needs windows."""
    found = split_unbounded(registration)
    return QueryStructure(found.patterns, found.steps, found.projection, distinct or found.distinct, found.template)


def group_number(lifted: LiftedStructure, *others: object) -> int:
    """Return the number of a group: the same for queries that differ only in the position of their registration.
    `others` are further values that tell groups apart."""
    text = json.dumps([lifted.structure.key, lifted.constants, *others], separators=(",", ":"), default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
