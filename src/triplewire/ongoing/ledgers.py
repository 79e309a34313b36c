"""Ledgers: what places were given, batch by batch, in files; so that a place that was lost can be made again.

A batch is done in rounds, and a round writes one file for each place that kept something in it. A batch that is done
again writes the same files over. Now and then all that a place still has is written down at once, so that there is
little to read when one is made again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from triplewire.config.files import replacing
from triplewire.model.errors import Unavailable

Moment = tuple[int, int]
"""A batch and a round of it."""

START: Moment = (-1, 0)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_WHOLE = 10**12
"""In the place of a round: all that there was after a batch."""


@dataclass(frozen=True)
class Ledger:
    """Of one place, in a directory of its own."""

    path: Path

    def write(self, moment: Moment, kept: pa.Table) -> None:
        """What a place kept in a round; returns only after it is durable."""
        self._put(moment, kept)

    def settle(self, batch: int, kept: pa.Table) -> None:
        """All that a place has after a batch."""
        self._put((batch, _WHOLE), kept)

    def since(self, after: Moment, before: Moment) -> Past:
        """What makes a place, as it was after a round, what it was before another one."""
        moments = [each for each in self._moments() if after < each < before]
        wholes = [each for each in moments if each[1] == _WHOLE]
        if wholes:
            return Past(True, self, tuple(each for each in moments if each >= wholes[-1]))
        return Past(after == START, self, tuple(moments))

    def get(self, moment: Moment) -> pa.Table:
        """What was written then. Raises Unavailable for a file that is torn."""
        try:
            with pa.OSFile(str(self._file(moment))) as file:
                return pa.ipc.open_stream(file).read_all()
        except (pa.ArrowInvalid, OSError) as error:
            raise Unavailable(f"{self._file(moment)} cannot be read: {error}") from error

    def size(self, after: int) -> tuple[int, int]:
        """How many bytes were written last as a whole, before a batch, and how many have come since."""
        whole, since = 0, 0
        for moment in self._moments():
            size = self._file(moment).stat().st_size
            whole, since = (size, 0) if moment[1] == _WHOLE else (whole, since + size)
        return whole, since

    def trim(self, batch: int) -> int:
        """Drop what nobody needs who makes a place as it was after a batch or later; how many files went."""
        moments = self._moments()
        wholes = [each for each in moments if each[1] == _WHOLE and each[0] <= batch]
        gone = [each for each in moments if wholes and each < wholes[-1]]
        for each in gone:
            self._file(each).unlink(missing_ok=True)
        return len(gone)

    def _moments(self) -> list[Moment]:
        if not self.path.exists():
            return []
        names = (name.split(".")[0].split("-") for name in os.listdir(self.path) if name.endswith(".arrow"))
        return sorted((int(batch), int(round_)) for batch, round_ in names)

    def _file(self, moment: Moment) -> Path:
        return self.path / f"{moment[0]:012}-{moment[1]}.arrow"

    def _put(self, moment: Moment, table: pa.Table) -> None:
        with replacing(self._file(moment)) as file, pa.ipc.new_stream(file, table.schema, options=_OPTIONS) as stream:
            stream.write_table(table)


@dataclass(frozen=True)
class Past:
    """What was written between two rounds. A place begins `anew` where it all was written down as a whole since."""

    anew: bool
    ledger: Ledger
    moments: tuple[Moment, ...]

    def __iter__(self) -> Iterator[pa.Table]:
        return map(self.ledger.get, self.moments)
