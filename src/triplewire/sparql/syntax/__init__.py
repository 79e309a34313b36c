"""SPARQL text to algebra."""

from triplewire.sparql.syntax.conjunctive import parse
from triplewire.sparql.syntax.queries import parse_query

__all__ = ["parse", "parse_query"]
