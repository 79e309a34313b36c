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
    """Patterns with parameters in the place of constants, what is computed and checked of their variables, and what is
    told."""

    patterns: tuple[Pattern, ...]
    steps: tuple[RowStep, ...] = ()
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
    """What an unbounded query comes to: its group, and what is told."""

    group: int
    variables: tuple[str, ...]
    structure: QueryStructure
    constants: tuple[str, ...]


def group_registration(
    registration: Registration,
    *,
    distinct: bool = False,
    streams: tuple[str, ...] | None = None,
    within: float | None = None,
    span: int | None = None,
    begins: int | None = None,
) -> GroupedQuery:
    """What is to be registered. Raises Unsupported for what can only be asked of a window.

    A query whose answers are a set or are published, or that looks back, has a group of its own: what was told to it
    before, and what it is still to be told, is nobody else's.
    """
    lifted = lift_constants(query_structure(registration, distinct=distinct))
    return group_query(lifted, streams=streams, within=within, span=span, begins=begins)


def group_query(
    lifted: LiftedStructure,
    *,
    streams: tuple[str, ...] | None = None,
    within: float | None = None,
    span: int | None = None,
    begins: int | None = None,
) -> GroupedQuery:
    """The same of a query that is taken apart already."""
    private = lifted.structure.distinct or lifted.structure.template or begins is not None
    own = uuid.uuid4().hex if private else None
    group = group_number(lifted, streams, within, span, own)
    return GroupedQuery(group, lifted.structure.projection, lifted.structure, lifted.constants)


def query_structure(registration: Registration, *, distinct: bool) -> QueryStructure:
    """What is asked, with all constants where they are."""
    found = split_unbounded(registration)
    return QueryStructure(found.patterns, found.steps, found.projection, distinct or found.distinct, found.template)


def group_number(lifted: LiftedStructure, *others: object) -> int:
    """The number of what is asked: the same for queries that differ in nothing but where they were registered. `others`
    is what else tells them apart."""
    text = json.dumps([lifted.structure.key, lifted.constants, *others], separators=(",", ":"), default=str)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
