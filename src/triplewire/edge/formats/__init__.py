"""The formats in which clients are told: one module for each, and how one is chosen."""

from triplewire.edge.formats.choices import FORMATS, format_of
from triplewire.edge.formats.items import ITEMS
from triplewire.edge.formats.lines import NDJSON
from triplewire.edge.formats.messages import MESSAGES
from triplewire.edge.formats.ports import Finding, Format
from triplewire.edge.formats.rdf import N_QUADS, TRIG
from triplewire.edge.formats.sse import SSE

__all__ = ["FORMATS", "ITEMS", "MESSAGES", "NDJSON", "N_QUADS", "SSE", "TRIG", "Finding", "Format", "format_of"]
