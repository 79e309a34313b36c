"""The lake as a Delta table on a file system, committed by delta-rs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import TableNotFoundError
from deltalake.transaction import AddAction

from triplewire.errors import StorageFull
from triplewire.lake.ports import Batch, DataFile, Snapshot, Span
from triplewire.lake.quads import QUADS

UPTO = "triplewire.upto"
"""The application transaction whose version is the position up to which the table is complete."""

# Files tell the least and the greatest position alone. A reader that is not told so takes the statistics of other
# columns for empty, and finds no row where it filters by them.
_CONFIGURATION = {"delta.dataSkippingStatsColumns": "position"}


class DeltaLake:
    """One Delta table. Every commit carries two application transactions: the query's batch number, by which a
    replayed batch is recognised, and the position up to which the table now speaks."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._table: DeltaTable | None = None
        self._snapshot: Snapshot | None = None
        self._spans: tuple[int, tuple[Span, ...]] = (-1, ())
        """Those of a version."""
        self._lock = Lock()

    def commit(self, batch: Batch, files: Sequence[DataFile]) -> bool:
        with self._lock:
            table = self._current() or self._created()
            done = table.transaction_version(batch.query)
            if done is not None and done >= batch.number:
                return False
            try:
                self._add(table, batch, files)
            except OSError as error:
                raise StorageFull(f"the lake took no commit: {error}") from error
            return True

    def files(self) -> Snapshot:
        with self._lock:
            if self._snapshot is None or self._is_newer(self._snapshot.version):
                self._snapshot = self._seen(self._current())
            return self._snapshot

    def spans(self) -> tuple[Span, ...]:
        version = self.files().version
        with self._lock:
            if self._spans[0] < version and self._table is not None:
                self._spans = (self._table.version(), _spans(self._table, self._path))
            return self._spans[1]

    def _is_newer(self, version: int) -> bool:
        """Is there a version after this one? Versions are numbered without gaps, each a file of its own, so that one
        look does; to read the log costs more the more files the table has."""
        return version < 0 or _commit(self._path, version + 1).exists()

    @staticmethod
    def _seen(table: DeltaTable | None) -> Snapshot:
        if table is None:
            return Snapshot(-1, 0, ())
        upto = table.transaction_version(UPTO) or 0
        return Snapshot(table.version(), upto, tuple(sorted(table.file_uris())))

    def _add(self, table: DeltaTable, batch: Batch, files: Sequence[DataFile]) -> None:
        marks = [Transaction(batch.query, batch.number), Transaction(UPTO, batch.upto)]
        table.create_write_transaction(
            [_action(each) for each in files],
            mode="append",
            schema=QUADS,
            commit_properties=CommitProperties(app_transactions=marks),
        )
        table.update_incremental()
        _sync(_commit(self._path, table.version()))

    def _current(self) -> DeltaTable | None:
        """The table at its newest version, opened once; None while there is none."""
        if self._table is not None:
            self._table.update_incremental()
            return self._table
        try:
            self._table = DeltaTable(self._path)
        except TableNotFoundError:
            return None
        return self._table

    def _created(self) -> DeltaTable:
        self._path.mkdir(parents=True, exist_ok=True)
        self._table = DeltaTable.create(self._path, QUADS, mode="ignore", name="quads", configuration=_CONFIGURATION)
        return self._table


def _spans(table: DeltaTable, path: Path) -> tuple[Span, ...]:
    """By what the commits tell of each file; no file is opened."""
    told = pa.table(table.get_add_actions(flatten=True)).select(["path", "min.position", "max.position"])
    found = [Span(str(path / name), first, last) for name, first, last in zip(*told.to_pydict().values(), strict=True)]
    return tuple(sorted(found, key=lambda each: each.first))


def _action(file: DataFile) -> AddAction:
    stats = {
        "numRecords": file.rows,
        "minValues": {"position": file.first},
        "maxValues": {"position": file.last},
        "nullCount": {"position": 0},
    }
    return AddAction(file.path, file.size, {}, int(time.time() * 1_000), True, json.dumps(stats))


def _commit(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def _sync(commit: Path) -> None:
    """A commit counts when it is on the disk: the file and the directory that names it."""
    for path in (commit, commit.parent):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
