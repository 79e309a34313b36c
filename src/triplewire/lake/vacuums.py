"""Vacuums: what no reader needs any more goes from the disk.

Older versions of the table can be read for some time: their files stay as long, and so does the table's log.
"""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

_LOG_RETENTION = "delta.logRetentionDuration"


def vacuum(table: Path, hours: int) -> list[str]:
    """Delete files that no version of the last `hours` names, and those that a crash left behind as long ago; which.
    A file that is being written now is younger."""
    try:
        found = DeltaTable(table)
    except TableNotFoundError:
        return []
    return found.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)


def checkpoint(table: Path, hours: int) -> int | None:
    """Write down the table as it is, so that nobody reads its log from the beginning, and let go of the log of versions
    older than `hours`; the version that was written down, if there is one."""
    try:
        found = DeltaTable(table)
    except TableNotFoundError:
        return None
    retention = f"interval {hours} hours"
    if found.metadata().configuration.get(_LOG_RETENTION) != retention:
        found.alter.set_table_properties({_LOG_RETENTION: retention})
    found.create_checkpoint()
    found.cleanup_metadata()
    return found.version()
