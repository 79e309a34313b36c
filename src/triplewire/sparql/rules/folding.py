"""Folding: a query through all rules, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from triplewire.sparql.algebra import Operator, Query
from triplewire.sparql.rewriting import rewritten
from triplewire.sparql.rules.constants import put_constants
from triplewire.sparql.rules.filters import push_filters
from triplewire.sparql.rules.merging import merge_patterns
from triplewire.sparql.rules.orders import order_patterns
from triplewire.sparql.rules.paths import expand_paths
from triplewire.sparql.rules.plannings import Planning
from triplewire.sparql.statistics import Statistics

Rule: TypeAlias = Callable[[Operator, Planning], Operator]
"""What to make of one operator, those inside it being done."""

RULES: tuple[Rule, ...] = (expand_paths, push_filters, merge_patterns, put_constants, order_patterns)


def planned(query: Query, statistics: Statistics) -> Query:
    """A query with the same answers that is cheaper to compute."""
    planning = Planning(statistics)
    return replace(query, where=reduce(lambda where, rule: applied(rule, where, planning), RULES, query.where))


def applied(rule: Rule, operator: Operator, planning: Planning) -> Operator:
    """One rule, to all of a tree."""
    return rewritten(operator, lambda each: rule(each, planning))
