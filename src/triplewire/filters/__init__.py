"""Filters: subscriptions as constraints on attributes, in JSON, and what they mean as queries."""

from triplewire.filters.constraints import Constraint, Filter
from triplewire.filters.documents import parse
from triplewire.filters.forms import Form, form_of
from triplewire.filters.queries import query, query_of
from triplewire.filters.relations import BAGS, RELATIONS, Operand, Relation

__all__ = [
    "BAGS",
    "RELATIONS",
    "Constraint",
    "Filter",
    "Form",
    "Operand",
    "Relation",
    "form_of",
    "parse",
    "query",
    "query_of",
]
