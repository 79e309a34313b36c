"""SPARQL text to algebra."""

from triplewire.sparql.syntax.queries import parse_query

__all__ = ["parse_query"]
