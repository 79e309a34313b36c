"""SPARQL: text to algebra to one relational expression to SQL."""

from triplewire.sparql.algebra import UNBOUND, Apply, Const, Expression, Family, Node, Param, Pattern, Query, Var
from triplewire.sparql.compile import (
    FACETS,
    QUADS,
    compile_event,
    explode,
    facets_of,
    facets_used,
    family_of,
    involved,
    params_with_facets,
)
from triplewire.sparql.compile.rows import compile_rows
from triplewire.sparql.compile.subscriptions import compile_subscription
from triplewire.sparql.conjunctions import Conjunction, conjunction
from triplewire.sparql.dialects import Dialect, to_sql
from triplewire.sparql.queries import Compiled, Step, compile_query
from triplewire.sparql.registrations import Registration, compile_windows, parse_registration
from triplewire.sparql.splits import split_unbounded
from triplewire.sparql.statistics import Counts, Statistics
from triplewire.sparql.syntax import parse_query
from triplewire.sparql.unbounded import Bind, Check, RowStep, Unbounded
from triplewire.sparql.windows import WindowClause

__all__ = [
    "FACETS",
    "QUADS",
    "UNBOUND",
    "Apply",
    "Bind",
    "Check",
    "Compiled",
    "Conjunction",
    "Const",
    "Counts",
    "Dialect",
    "Expression",
    "Family",
    "Node",
    "Param",
    "Pattern",
    "Query",
    "Registration",
    "RowStep",
    "Statistics",
    "Step",
    "Unbounded",
    "Var",
    "WindowClause",
    "compile_event",
    "compile_query",
    "compile_rows",
    "compile_subscription",
    "compile_windows",
    "conjunction",
    "explode",
    "facets_of",
    "facets_used",
    "family_of",
    "involved",
    "params_with_facets",
    "parse_query",
    "parse_registration",
    "split_unbounded",
    "to_sql",
]
