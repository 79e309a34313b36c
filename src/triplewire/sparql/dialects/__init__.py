"""One relational expression as the text of each engine."""

from triplewire.sparql.dialects.generators import Dialect, to_sql

__all__ = ["Dialect", "to_sql"]
