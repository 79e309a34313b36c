"""Commits: from one version of the table to the next, by what the entries of its log say.

To have delta-rs tell all files of a table takes the longer the more there are, also where one came and none went. Who
looks every second follows the log instead: an entry is a small file, and says what came and what went.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from triplewire.lake.ports import DataFile, Snapshot
from triplewire.lake.ranges import from_statistics

UPTO = "triplewire.upto"
"""The application transaction whose version is the position up to which the table is complete."""
REMOVALS = "triplewire.removals"
"""Likewise, how many changes took rows away."""
ZONES = "triplewire.zones"
"""Likewise, the version of the zone map."""

_MANY = 100
"""Commits that are not followed one by one: to read the table anew is quicker."""


def commit_path(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def followed(table: Path, snapshot: Snapshot) -> Snapshot | None:
    """The table as it is now, if all that has happened to it since is that files came and went; else None."""
    for _ in range(_MANY):
        entry = _read(commit_path(table, snapshot.version + 1))
        if entry is None:
            return snapshot
        commit = Commit.of(entry)
        if commit is None:
            return None
        snapshot = commit.applied(snapshot)
    return None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


@dataclass
class Commit:
    """Files that came and went, by their paths, and the application transactions."""

    added: dict[str, DataFile] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    marks: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, entry: bytes) -> Commit | None:
        """None where an entry says more than that, or that rows were taken away: then files may be others than they
        were, under the same names."""
        made = cls()
        understood = all(made._take(*action) for action in _actions(entry))
        return made if understood and REMOVALS not in made.marks else None

    def applied(self, snapshot: Snapshot) -> Snapshot:
        """The next version."""
        gone = self.removed | self.added.keys()
        files = [each for each in snapshot.files if each.path not in gone] if gone else [*snapshot.files]
        for each in self.added.values():
            insort(files, each, key=DataFile.place)
        return replace(
            snapshot,
            version=snapshot.version + 1,
            upto=self.marks.get(UPTO, snapshot.upto),
            zones=self.marks.get(ZONES, snapshot.zones),
            files=tuple(files),
        )

    def _take(self, kind: str, said: Mapping[str, Any]) -> bool:
        """Whether it is understood."""
        match kind:
            case "add" if said.get("stats") and not said.get("deletionVector"):
                path, zone = unquote(said["path"]), said["partitionValues"].get("zone")
                self.added[path] = from_statistics(path, said["size"], zone, orjson.loads(said["stats"]))
            case "remove":
                self.removed.add(unquote(said["path"]))
            case "txn":
                self.marks[said["appId"]] = said["version"]
            case _:
                return kind == "commitInfo"
        return True


def _actions(entry: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for line in entry.splitlines():
        if line.strip():
            yield from orjson.loads(line).items()
