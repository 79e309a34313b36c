"""The lake: everything that was ever published, as one Delta table of quads."""

from triplewire.lake.ports import Batch, DataFile, Lake, Snapshot, Span

__all__ = ["Batch", "DataFile", "Lake", "Snapshot", "Span"]
