"""Algebra to one relational expression."""

from triplewire.sparql.compile.columns import involved
from triplewire.sparql.compile.events import compile_event, facets_used, params_with_facets
from triplewire.sparql.compile.facets import FACETS, QUADS, explode, facets_of
from triplewire.sparql.compile.statics import family_of

__all__ = [
    "FACETS",
    "QUADS",
    "compile_event",
    "explode",
    "facets_of",
    "facets_used",
    "family_of",
    "involved",
    "params_with_facets",
]
