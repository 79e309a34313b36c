"""Lakes: how a Spark program names one, and the files of one version of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from triplewire.model.errors import BadRequest, NotFound
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import LakeReader, Snapshot, VersionOrTime

Named: TypeAlias = str | Path | LakeReader | Snapshot
"""A broker's data directory, or the lake's table itself, as a path; an open lake; or one version of it."""

_BELOW = ("", "quads", "lake/quads")
"""Where the table lies below what people call the lake."""


def snapshot_of(lake: Named, version: int | None = None, as_of: datetime | str | None = None) -> Snapshot:
    """The newest version, one by its number, or the one that was the newest at a time.

    Raises NotFound where there is no table or no such version, BadRequest for what cannot be meant.
    """
    at = moment(version, as_of)
    if not isinstance(lake, Snapshot):
        return opened(lake).files(at)
    if at is not None:
        raise BadRequest(f"the lake is given at version {lake.version} already; give version or as_of with its path")
    return lake


def opened(lake: str | Path | LakeReader) -> LakeReader:
    return DeltaLake(table_of(lake)) if isinstance(lake, str | Path) else lake


def table_of(lake: str | Path) -> Path:
    """The directory of the table. Raises NotFound, with where it was looked for."""
    if "://" in str(lake):
        raise BadRequest(f"{lake} is no path of a local or mounted disk; a broker's address is the option url")
    places = [Path(lake).expanduser().absolute() / below for below in _BELOW]
    for place in places:
        if (place / "_delta_log").is_dir():
            return place
    looked = ", ".join(map(str, places))
    raise NotFound(f"there is no lake at {lake}: none of {looked} is a Delta table; has anything been published yet?")


def moment(version: int | None, as_of: datetime | str | None) -> VersionOrTime | None:
    """Which version is meant; None for the newest."""
    if version is not None and as_of is not None:
        raise BadRequest("version and as_of are both given; give one of them")
    if as_of is not None:
        return _time(as_of)
    if version is not None and version < 0:
        raise BadRequest(f"version {version} cannot be: versions are numbered from 0 on")
    return version


def _time(at: datetime | str) -> datetime:
    try:
        found = datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        raise BadRequest(f"as_of must be an ISO 8601 time, such as 2026-11-16T08:30:00Z, not {at!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
