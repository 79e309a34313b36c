"""The lake: everything that was ever published, as one Delta table of quads."""

from triplewire.lake.ports import Batch, Change, DataFile, Lake, Moment, Snapshot

__all__ = ["Batch", "Change", "DataFile", "Lake", "Moment", "Snapshot"]
