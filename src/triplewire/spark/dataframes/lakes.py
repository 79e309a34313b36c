"""Lakes by name: the table and version that a Spark program means, and the ontologies of its broker."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from triplewire.history.executor import OntologyTables
from triplewire.model.clock import SystemClock
from triplewire.model.errors import BadRequest, NotFound
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import LakeReader, Snapshot, VersionOrTime
from triplewire.storage.registry.sqlite import SqliteRegistry

LakeReference: TypeAlias = str | Path | LakeReader | Snapshot
"""A broker's data directory, or the lake's table itself, as a path; an open lake; or one version of it."""

_TABLE_FOLDERS = ("", "quads", "lake/quads")
"""Where the table lies below what people call the lake."""


def open_snapshot(lake: LakeReference, version: int | None = None, as_of: datetime | str | None = None) -> Snapshot:
    """Return the newest version, one by its number, or the one that was the newest at a time.

    Raises NotFound if there is no table or no such version, BadRequest if both are given.
    """
    at = parse_version(version, as_of)
    if not isinstance(lake, Snapshot):
        return open_lake(lake).files(at)
    if at is not None:
        raise BadRequest(f"the lake is given at version {lake.version} already; give version or as_of with its path")
    return lake


def open_lake(lake: str | Path | LakeReader) -> LakeReader:
    return DeltaLake(find_table(lake)) if isinstance(lake, str | Path) else lake


def find_table(lake: str | Path) -> Path:
    """Return the directory of the table. Raises NotFound, with the directories that were tried."""
    if "://" in str(lake):
        raise BadRequest(f"{lake} is no path of a local or mounted disk; a broker's address is the option url")
    places = [Path(lake).expanduser().absolute() / below for below in _TABLE_FOLDERS]
    for place in places:
        if (place / "_delta_log").is_dir():
            return place
    looked = ", ".join(map(str, places))
    raise NotFound(f"there is no lake at {lake}: none of {looked} is a Delta table; has anything been published yet?")


def parse_version(version: int | None, as_of: datetime | str | None) -> VersionOrTime | None:
    """Return the version that the options name; None for the newest."""
    if version is not None and as_of is not None:
        raise BadRequest("version and as_of are both given; give one of them")
    if as_of is not None:
        return _parse_time(as_of)
    if version is not None and version < 0:
        raise BadRequest(f"version {version} cannot be: versions are numbered from 0 on")
    return version


def _parse_time(at: datetime | str) -> datetime:
    try:
        found = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        raise BadRequest(f"as_of must be an ISO 8601 time, such as 2026-11-16T08:30:00Z, not {at!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


_REGISTRY = "log.db"


def open_ontologies(lake: LakeReference) -> OntologyTables:
    """Return the ontologies of the broker with this data directory. Raises BadRequest for another directory."""
    file = Path(lake).expanduser() / _REGISTRY if isinstance(lake, str | Path) else None
    if file is None or not file.is_file():
        raise BadRequest(
            "entailment goes by the ontologies of a broker, which are in its data directory; "
            f"name that (it has the file {_REGISTRY}), not {lake!r:.200}"
        )
    return OntologyTables(SqliteRegistry(file, SystemClock()))
