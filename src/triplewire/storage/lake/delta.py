"""The Delta twin of the lake: one Delta table on a file system, committed by delta-rs.

A reader that polls follows the table's log from commit to commit: to list all files takes delta-rs the longer the more
there are, even if only one was added.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import unquote

import orjson
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from triplewire.config.files import sync
from triplewire.model import START
from triplewire.model.errors import Conflict, NotFound, StorageFull
from triplewire.storage.lake.data_files import (
    RANGED,
    TABLE,
    ZONE,
    file_from_statistics,
    files_from_actions,
    format_statistics,
)
from triplewire.storage.lake.ports import CommitBatch, DataFile, Snapshot, TableChange, VersionOrTime

RETENTION_STREAMS: Final = 1_000
"""Streams that lose events to retention at once for which a position is recorded: each is a line in the Delta log for
good. For more streams there is one common position."""


POSITION = "triplewire.position"
"""The application transaction whose version is the position up to which the table is complete."""
REMOVALS = "triplewire.removals"
"""Likewise, how many changes took rows away."""
ZONES = "triplewire.zones"
"""Likewise, the version of the zone map."""

_MANY = 100
"""Commits that are not followed one by one: to read the table anew is quicker."""


def commit_path(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def follow_log(table: Path, snapshot: Snapshot) -> Snapshot | None:
    """The table as it is now, if all that has happened to it since is that files came and went; else None."""
    for _ in range(_MANY):
        entry = _read_commit(commit_path(table, snapshot.version + 1))
        if entry is None:
            return snapshot
        commit = CommitFiles.of(entry)
        if commit is None:
            return None
        snapshot = commit.applied(snapshot)
    return None


def _read_commit(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@dataclass
class CommitFiles:
    """Files that came and went, by their paths, and the application transactions."""

    added: dict[str, DataFile] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    versions: dict[str, int] = field(default_factory=dict)
    """Of application transactions."""

    @classmethod
    def of(cls, entry: bytes) -> CommitFiles | None:
        """None where an entry says more than that, or that rows were taken away: then files may be others than they
        were, under the same names."""
        made = cls()
        understood = all(made._take(*action) for action in _actions(entry))
        return made if understood and REMOVALS not in made.versions else None

    def applied(self, snapshot: Snapshot) -> Snapshot:
        """The next version."""
        gone = self.removed | self.added.keys()
        files = [each for each in snapshot.files if each.path not in gone] if gone else [*snapshot.files]
        for each in self.added.values():
            insort(files, each, key=DataFile.order)
        return replace(
            snapshot,
            version=snapshot.version + 1,
            position=self.versions.get(POSITION, snapshot.position),
            zones=self.versions.get(ZONES, snapshot.zones),
            files=tuple(files),
        )

    def _take(self, kind: str, said: Mapping[str, Any]) -> bool:
        """Whether it is understood."""
        match kind:
            case "add" if said.get("stats") and not said.get("deletionVector"):
                path, zone = unquote(said["path"]), said["partitionValues"].get("zone")
                self.added[path] = file_from_statistics(path, said["size"], zone, orjson.loads(said["stats"]))
            case "remove":
                self.removed.add(unquote(said["path"]))
            case "txn":
                self.versions[said["appId"]] = said["version"]
            case _:
                return kind == "commitInfo"
        return True


def _actions(entry: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for line in entry.splitlines():
        if line.strip():
            yield from orjson.loads(line).items()


CHANGES = "triplewire.changes"
"""The application transaction that counts changes. Two that were made of the same table cannot both be committed."""

FLOOR = "triplewire.floor"
"""Likewise, the newest position at which retention took an event away; with a dot and a stream, one of that stream."""
OTHERS = "*"
"""In the place of a stream: those that have no mark of their own, because there were too many."""

_CONFIGURATION = {
    # A reader that is not told so takes the statistics of other columns for empty, and finds no row by them.
    "delta.dataSkippingStatsColumns": ",".join(RANGED)
}

# Maintenance writes checkpoints and cleans the log, so that no batch waits for it.
_NOTHING_MORE = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class DeltaLake:
    """One Delta table. Every batch that is committed carries two application transactions: its number, by which it is
    recognised when it is replayed, and the position up to which the table now speaks."""

    def __init__(self, path: Path, *, retention_streams: int = RETENTION_STREAMS) -> None:
        self._path = path.absolute()
        self._retention_streams = retention_streams
        self._table: DeltaTable | None = None
        self._snapshot: Snapshot | None = None
        self._floors: tuple[int, dict[str | None, int]] = (0, {})
        """By streams, as long as no rows are taken away."""
        self._lock = Lock()

    def commit(self, batch: CommitBatch, files: Sequence[DataFile]) -> bool:
        with self._lock:
            table = self._current() or self._created()
            done = table.transaction_version(batch.query)
            if done is not None and done >= batch.number:
                return False
            marks = [Transaction(batch.query, batch.number), Transaction(POSITION, batch.position)]
            self._write(table, [_add_action(each, new=True) for each in files], marks)
            return True

    def replace(self, change: TableChange) -> None:
        with self._lock:
            table = self._current() or self._created()
            there = {each.path for each in self._seen(table).files}
            if gone := [each.path for each in change.removed if each.path not in there]:
                raise Conflict(f"the lake has no file {gone[0]} any more: look at it again")
            added = [_add_action(each, new=change.lost) for each in change.added]
            removed = [_remove_action(each, lost=change.lost) for each in change.removed]
            self._write(table, [*removed, *added], self._transactions(table, change))

    def files(self, at: VersionOrTime | None = None) -> Snapshot:
        with self._lock:
            if at is not None:
                return _open_past(self._path, at)
            if self._snapshot is None or self._is_newer(self._snapshot.version):
                self._snapshot = self._followed() or self._seen(self._current())
            return self._snapshot

    def _followed(self) -> Snapshot | None:
        """The newest version, where what is known leads to it."""
        known = self._snapshot
        if known is None or known.version < 0:
            return None
        found = follow_log(self._path, known)
        return found if found is not known else None

    def floor(self, stream: str | None = None) -> int:
        removals = self.files().removals
        with self._lock:
            if self._floors[0] != removals:
                self._floors = (removals, {})
            known = self._floors[1]
            if removals and stream not in known:
                known[stream] = self._floor(stream)
            return known.get(stream, START)

    def _floor(self, stream: str | None) -> int:
        names = (FLOOR,) if stream is None else (_floor(stream), _floor(OTHERS))
        table = self._current()
        return max(_value_or(table.transaction_version(each), START) for each in names) if table else START

    def _is_newer(self, version: int) -> bool:
        """Is there a version after this one? Versions are numbered without gaps, each a file of its own, so that one
        look does; to read the log costs more the more files the table has. Old ones are cleaned away: who has one of
        these is far behind."""
        if version < 0 or commit_path(self._path, version + 1).exists():
            return True
        return not commit_path(self._path, version).exists()

    def _seen(self, table: DeltaTable | None) -> Snapshot:
        if table is None:
            return Snapshot.empty(str(self._path))
        known = self._snapshot
        # Where rows were taken away, files may be others than they were, under the same names.
        same = known is not None and known.removals == _value_or(table.transaction_version(REMOVALS), 0)
        return _snapshot(table, self._path, known if same else None)

    def _write(self, table: DeltaTable, actions: list[AddAction | RemoveAction], marks: list[Transaction]) -> None:
        try:
            table.create_write_transaction(
                actions,
                mode="append",
                schema=TABLE,
                partition_by=[ZONE],
                commit_properties=CommitProperties(app_transactions=marks),
                post_commithook_properties=_NOTHING_MORE,
            )
        except CommitFailedError as error:
            raise Conflict(f"the lake was changed by another at the same time: {error}") from error
        except OSError as error:
            raise StorageFull(f"the lake took no commit: {error}") from error
        table.update_incremental()
        # A commit counts when it is on the disk: the file and the directory that names it.
        commit = commit_path(self._path, table.version())
        sync(commit)
        sync(commit.parent)

    def _transactions(self, table: DeltaTable, change: TableChange) -> list[Transaction]:
        found = [Transaction(CHANGES, _value_or(table.transaction_version(CHANGES), 0) + 1)]
        if change.lost:
            found.append(Transaction(REMOVALS, _value_or(table.transaction_version(REMOVALS), 0) + 1))
        if change.zones is not None:
            found.append(Transaction(ZONES, change.zones))
        for name, position in self._floor_positions(change.floors).items():
            found.append(Transaction(name, max(position, _value_or(table.transaction_version(name), START))))
        return found

    def _floor_positions(self, floors: Mapping[str, int]) -> dict[str, int]:
        """Positions by transaction. These stay in the table's log for good, so that there are not too many."""
        if not floors:
            return {}
        named = floors if len(floors) <= self._retention_streams else {OTHERS: max(floors.values())}
        return {FLOOR: max(floors.values()), **{_floor(stream): position for stream, position in named.items()}}

    def _current(self) -> DeltaTable | None:
        """The table at its newest version, opened once; None while there is none."""
        if self._table is not None:
            # To look for news, delta-rs lists the whole log: a tenth of a second for that of a day.
            if self._is_newer(self._table.version()):
                self._table.update_incremental()
            return self._table
        try:
            self._table = DeltaTable(self._path)
        except TableNotFoundError:
            return None
        return self._table

    def _created(self) -> DeltaTable:
        self._path.mkdir(parents=True, exist_ok=True)
        self._table = DeltaTable.create(
            self._path, TABLE, mode="ignore", name="quads", partition_by=[ZONE], configuration=_CONFIGURATION
        )
        return self._table


def _snapshot(table: DeltaTable, path: Path, before: Snapshot | None = None) -> Snapshot:
    """The snapshot of a loaded table. Files of an earlier snapshot are taken over from it."""
    actions = pa.table(table.get_add_actions(flatten=True))
    names = [unquote(name) for name in actions["path"].to_pylist()]
    known = {each.path: each for each in before.files} if before else {}
    fresh = actions.filter(pa.array([name not in known for name in names], pa.bool_()))
    known |= {each.path: each for each in files_from_actions(fresh)}
    return Snapshot(
        str(path),
        table.version(),
        table.transaction_version(POSITION) or 0,
        table.transaction_version(REMOVALS) or 0,
        _value_or(table.transaction_version(ZONES), -1),
        tuple(sorted((known[name] for name in names), key=DataFile.order)),
    )


def _value_or(value: int | None, default: int) -> int:
    return default if value is None else value


def _open_past(path: Path, at: VersionOrTime) -> Snapshot:
    try:
        table = DeltaTable(path)
        table.load_as_version(at)
    except DeltaError as error:
        raise NotFound(f"the lake has no version {at}: {error}") from error
    if isinstance(at, datetime) and (made := _committed_at(table)) > at:
        raise NotFound(f"the lake has no version of {at.isoformat()}: the oldest that is kept is of {made.isoformat()}")
    found = _snapshot(table, path)
    if gone := sum(not Path(each).exists() for each in found.paths):
        raise NotFound(f"version {found.version} of the lake can no longer be read: {gone} of its files are gone")
    return found


def _committed_at(table: DeltaTable) -> datetime:
    """The commit time of a version. For times before the oldest version, the table returns that one."""
    return datetime.fromtimestamp(table.history(1)[0]["timestamp"] / 1_000, UTC)


def _floor(stream: str) -> str:
    return f"{FLOOR}.{stream}"


def _add_action(file: DataFile, *, new: bool) -> AddAction:
    """`new` says to those who follow the table that there is something for them in it."""
    return AddAction(file.path, file.size, {ZONE: file.zone}, _milliseconds(), new, format_statistics(file))


def _remove_action(file: DataFile, *, lost: bool) -> RemoveAction:
    return RemoveAction(file.path, lost, _milliseconds(), file.size, {ZONE: file.zone})


def _milliseconds() -> int:
    return int(time.time() * 1_000)


@dataclass(frozen=True)
class TableVersion:
    """A commit of the table, in the words of its log."""

    version: int
    at: datetime
    work: str


def list_versions(table: Path, limit: int) -> list[TableVersion]:
    """The newest, the newest of them first."""
    try:
        found = DeltaTable(table)
    except TableNotFoundError:
        return []
    commits = found.history(limit)[:limit]
    newest = found.version()
    return [
        TableVersion(newest - back, datetime.fromtimestamp(each["timestamp"] / 1_000, UTC), each["operation"].lower())
        for back, each in enumerate(commits)
    ]
