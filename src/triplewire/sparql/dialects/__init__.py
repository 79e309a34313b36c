"""SQL dialects of the engines."""

from triplewire.sparql.dialects.generators import Dialect, to_sql

__all__ = ["Dialect", "to_sql"]
