"""Triplewire for Spark programs: SPARQL as frames, the format `triplewire`, and frames that are published."""

from triplewire.spark.dataframes.data_source import register
from triplewire.spark.dataframes.format import EVENTS, QUADS
from triplewire.spark.dataframes.publish import Report, write_events
from triplewire.spark.dataframes.sparql import sparql

__all__ = ["EVENTS", "QUADS", "Report", "register", "sparql", "write_events"]
