"""The files of one index generation in a directory, which all workers of a machine map.

The writer holds the lock. It appends, marks in the header that it is writing, and at the end publishes the sizes and
the position up to which the index is complete. Readers go on meanwhile with what was published before. A mark left by
a writer that died makes the files stale: the next process starts a new generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from triplewire.kernels.arrays import Int8, Records
from triplewire.kernels.words import memory_fence
from triplewire.matching.index import arrays
from triplewire.matching.index.columns import (
    ENDED,
    MEMBER,
    NAME_SLOT,
    SMALLEST,
    Allocate,
    MappedColumn,
    MappedTable,
    StaleIndex,
    map_file,
)
from triplewire.matching.index.keys import COUNTERS, USES
from triplewire.matching.index.relations import OntologyRelations, no_relations

COLUMNS = {
    "programs": arrays.PROGRAM,
    "slots": arrays.PATTERN_SLOT,
    "steps": arrays.STEP,
    "hints": arrays.HINT,
    "groups": arrays.GROUP,
    "constants": arrays.CONSTANT,
    "pool": np.dtype(np.uint8),
    "postings": arrays.POSTING,
    "names": np.dtype(np.int64),
    "ended": ENDED,
    "journal": np.dtype(np.int64),
}
TABLES = {"keys": arrays.KEY, "bloom": np.dtype(np.uint64), "numbers": NAME_SLOT, "members": MEMBER}

FILE_HEADER = np.dtype(
    [
        ("inode", "u8"),
        ("version", "i8"),
        ("last", "i8"),
        ("fingerprint", "u8"),
        ("horizon", "i8"),
        ("forgotten", "i8"),
        ("taken", "i8"),
        ("tables", "i8", (len(TABLES),)),
        ("sizes", "i8", (len(COLUMNS),)),
        ("reserved", "i8", (len(COLUMNS),)),
        ("sampled", "i8", (2,)),
        ("sample", "u4", (COUNTERS,)),
        ("uses", "i1", (USES,)),
        ("writing", "i1"),
    ],
    align=True,
)
"""`version` is the position up to which the index is complete, `last` that of the last change in it and
`fingerprint` its hash. The first `forgotten` records of `ended` are forgotten: all before the position `horizon`.
`taken` counts used slots of the member table. `inode` is that of the header file itself, so that a copy of the
directory, which may be inconsistent, is recognized."""

_BITS_PER_KEY = 8
"""Bits of the Bloom filter for each slot of the key table, which is at most half full: one absent key in sixteen
passes."""


class IndexFiles:
    """The files of one generation, as arrays."""

    def __init__(self, directory: Path, allocate: Allocate) -> None:
        """Raises StaleIndex if the files cannot be read, or a writer died while writing."""
        path = directory / "header"
        self._header = np.frombuffer(map_file(path, FILE_HEADER.itemsize, FILE_HEADER.itemsize), FILE_HEADER)
        self.header = self._header[0]
        self.inode = path.stat().st_ino
        if self.header["inode"] != self.inode or self.header["writing"]:
            raise StaleIndex(path)
        self.columns = {
            name: MappedColumn(directory / name, kind, int(reserved), allocate)
            for (name, kind), reserved in zip(COLUMNS.items(), self.header["reserved"], strict=True)
        }
        self.tables = {name: MappedTable(directory, name, kind, allocate) for name, kind in TABLES.items()}
        self.load()

    @classmethod
    def fresh(cls, directory: Path, allocate: Allocate) -> IndexFiles:
        """Make the files of an empty index. Raises StorageFull."""
        directory.mkdir(parents=True)
        for name in COLUMNS:
            (directory / name).touch()
        for name, kind in TABLES.items():
            first = MappedTable(directory, name, kind, allocate)
            table = first.begin(SMALLEST // _BITS_PER_KEY if name == "bloom" else SMALLEST)
            if name == "keys":
                table["head"] = -1
        header = np.zeros(1, FILE_HEADER)
        header["tables"] = 1
        path = directory / "header"
        path.write_bytes(header.tobytes())
        np.frombuffer(map_file(path, FILE_HEADER.itemsize, FILE_HEADER.itemsize), FILE_HEADER)["inode"] = (
            path.stat().st_ino
        )
        return cls(directory, allocate)

    @property
    def uses(self) -> Int8:
        found: Int8 = self._header["uses"][0]
        return found

    def arrays(self, relations: OntologyRelations | None = None) -> arrays.IndexArrays:
        """The arrays as compiled code takes them, with the ontologies at the events to be matched."""
        columns = {name: each.data for name, each in self.columns.items()}
        stored = columns | {name: each.data for name, each in self.tables.items()}
        return arrays.IndexArrays(
            **{name: data for name, data in stored.items() if name in arrays.IndexArrays._fields},
            uses=self.uses,
            sample=self._header["sample"][0],
            sampled=self._header["sampled"][0],
            relations=no_relations() if relations is None else relations,
        )

    def size(self, name: str) -> int:
        """The published number of records of a column."""
        return int(self.header["sizes"][[*COLUMNS].index(name)])

    def filled(self, name: str) -> Records:
        """The published records of a column."""
        return self.columns[name].data[: self.size(name)]

    def follow(self) -> None:
        """Switch to the current key tables. Raises StaleIndex if they are missing."""
        while True:
            numbers = self.header["tables"].copy()
            try:
                for name, number in zip(("keys", "bloom"), numbers, strict=False):
                    self.tables[name].follow(int(number))
            except StaleIndex:
                if (numbers == self.header["tables"]).all():
                    raise
            else:
                return

    def load(self) -> None:
        """Load the sizes that other processes have published. The caller holds the lock."""
        for column, size, reserved in zip(
            self.columns.values(), self.header["sizes"], self.header["reserved"], strict=True
        ):
            column.size, column.reserved = int(size), int(reserved)
        for table, number in zip(self.tables.values(), self.header["tables"], strict=True):
            table.follow(int(number))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A block of writes, published at its end. If it fails, the mark in the header stays. The caller holds the
        lock."""
        self.header["writing"] = 1
        memory_fence()
        yield
        self.publish()
        self.header["writing"] = 0

    def publish(self) -> None:
        """Publish sizes and table numbers."""
        memory_fence()
        self.header["reserved"] = [each.reserved for each in self.columns.values()]
        self.header["sizes"] = [each.size for each in self.columns.values()]
        self.header["tables"] = [each.number for each in self.tables.values()]
        memory_fence()

    def begin_keys(self, size: int) -> tuple[Records, Records]:
        """Make new key tables with `size` slots, which no reader has yet. Raises StorageFull."""
        bloom = self.tables["bloom"].begin(size // _BITS_PER_KEY)
        keys = self.tables["keys"].begin(size)
        keys["head"] = -1
        return keys, bloom
