"""Records: what was counted of a lake, beside it, so that the next process does not count it again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from triplewire.config import limits
from triplewire.config.files import replace_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """All up to a position of a table that had lost rows so many times."""

    upto: int
    removals: int
    rows: int
    facts: list[list[Any]]
    sketches: dict[str, list[str]]
    """By predicate, the registers of each kind in hexadecimal."""


class Records:
    """One record in a file, which any process may replace by a newer one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved = 0

    def read(self) -> Record | None:
        """None if there is none, or none that can be read."""
        try:
            found: Mapping[str, Any] = orjson.loads(self._path.read_bytes())
            record = Record(**found)
        except (OSError, ValueError, TypeError):
            return None
        self._saved = record.rows
        return record

    def forget(self) -> None:
        """Away with what there is: it speaks of rows that are gone."""
        self._saved = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def wants(self, rows: int) -> bool:
        """Is it worth writing one of so many rows? Not of few, and not again for few more."""
        return abs(rows - self._saved) >= max(limits.RECORDED_QUADS, self._saved // 5)

    def write(self, record: Record) -> None:
        """Replaces what there is. Where it cannot be written, the next process counts by itself."""
        self._saved = record.rows
        try:
            replace_file(self._path, orjson.dumps(record), durable=False)
        except OSError as error:
            logger.warning("statistics of the lake were not saved: %s", error)
