"""SPARQL text to algebra."""

from triplewire.sparql.syntax.queries import parse

__all__ = ["parse"]
