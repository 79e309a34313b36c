"""Triplewire for Spark programs: SPARQL as frames, the format `triplewire`, and frames that are published."""

from triplewire.spark.answers import sparql
from triplewire.spark.publications import Report, write_events
from triplewire.spark.schemas import EVENTS, QUADS
from triplewire.spark.source import register

__all__ = ["EVENTS", "QUADS", "Report", "register", "sparql", "write_events"]
