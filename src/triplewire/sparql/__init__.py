"""SPARQL: text to algebra to one relational expression to SQL."""

from triplewire.sparql.algebra import UNBOUND, Apply, Const, Expression, Family, Node, Param, Pattern, Query, Var
from triplewire.sparql.compiler.facets import FACETS, QUADS, explode, facets_of
from triplewire.sparql.compiler.operators import compile_rows
from triplewire.sparql.compiler.subscriptions import (
    compile_event,
    compile_subscription,
    facets_used,
    params_with_facets,
)
from triplewire.sparql.compiler.terms import needs_exact_comparison
from triplewire.sparql.conjunctions import Bind, Check, Conjunction, RowStep, UnboundedQuery, to_conjunction
from triplewire.sparql.constants import family_of
from triplewire.sparql.decomposition import split_unbounded
from triplewire.sparql.dialects.generators import Dialect, to_sql
from triplewire.sparql.queries import CompiledQuery, PreparationStep, compile_query
from triplewire.sparql.rspql import Registration, compile_windows, parse_registration
from triplewire.sparql.statistics import Statistics, TripleCounts
from triplewire.sparql.syntax.cursor import WindowClause
from triplewire.sparql.syntax.queries import parse_query

__all__ = [
    "FACETS",
    "QUADS",
    "UNBOUND",
    "Apply",
    "Bind",
    "Check",
    "CompiledQuery",
    "Conjunction",
    "Const",
    "Dialect",
    "Expression",
    "Family",
    "Node",
    "Param",
    "Pattern",
    "PreparationStep",
    "Query",
    "Registration",
    "RowStep",
    "Statistics",
    "TripleCounts",
    "UnboundedQuery",
    "Var",
    "WindowClause",
    "compile_event",
    "compile_query",
    "compile_rows",
    "compile_subscription",
    "compile_windows",
    "explode",
    "facets_of",
    "facets_used",
    "family_of",
    "needs_exact_comparison",
    "params_with_facets",
    "parse_query",
    "parse_registration",
    "split_unbounded",
    "to_conjunction",
    "to_sql",
]
