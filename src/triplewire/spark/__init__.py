"""Triplewire for Spark programs: SPARQL results as DataFrames, the format `triplewire`, and publishing.

Names are loaded on first use, because Spark's worker daemon imports this package, too, and must start at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triplewire.spark.dataframes.data_source import register
    from triplewire.spark.dataframes.format import EVENTS, QUADS
    from triplewire.spark.dataframes.publish import PublishReport, write_events
    from triplewire.spark.dataframes.sparql import sparql

__all__ = ["EVENTS", "QUADS", "PublishReport", "register", "sparql", "write_events"]

_HOMES = {
    "EVENTS": "format",
    "QUADS": "format",
    "PublishReport": "publish",
    "register": "data_source",
    "sparql": "sparql",
    "write_events": "publish",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.dataframes.{_HOMES[name]}"), name)
