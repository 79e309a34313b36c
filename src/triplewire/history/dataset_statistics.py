"""Dataset statistics: HyperLogLog sketches of predicates, the file that keeps them, and a summary for catalogues.

Some bits of each hash choose a register, which keeps the longest run of zeros of the rest. Registers of two sets of
rows are merged by the maximum, so that no row is read twice.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import orjson
import pyarrow as pa

from triplewire.config.files import replace_file
from triplewire.sparql.statistics import TripleCounts

RECORDED_QUADS: Final = 100_000
"""New quads of the lake from which on a process of queries writes down what it has counted, for the next one: fewer are
counted again in a second."""

SAMPLE_TERMS: Final = 100
"""Predicates, and classes, that are told of a stream or of all: the most frequent."""


# Of each hash a few bits choose a register, and the register keeps the longest run of zeros that the rest began with:
# the more different values there were, the longer (HyperLogLog). Registers of two sets of rows are joined by the
# maximum, so that no row is looked at twice.

REGISTERS = 256
"""They estimate within 7 percent, which is enough to choose an order of joins."""

_KINDS = ("hash(subject, object)", "hash(subject)", "hash(object)")
_REST = 64 - int(math.log2(REGISTERS))
_TAKE = f"""
INSERT INTO sketches SELECT predicate, kind, h & {REGISTERS - 1} AS register,
    max({_REST} - floor(log2(greatest(h >> {64 - _REST}, 1)))) AS run
FROM (SELECT predicate, unnest([0, 1, 2]) AS kind, unnest([{", ".join(_KINDS)}]) AS h FROM {{rows}}) GROUP BY ALL
"""
_JOIN = """
CREATE OR REPLACE TEMP TABLE sketches AS
SELECT predicate, kind, register, max(run) AS run FROM sketches GROUP BY ALL
"""
_SUMS = """
SELECT predicate, kind, count(*), sum(pow(2, -run)) FROM (
    FROM sketches UNION ALL BY NAME SELECT NULL AS predicate, kind, register, max(run) AS run FROM sketches GROUP BY ALL
) GROUP BY predicate, kind
"""


class HyperLogLog:
    """Belongs to one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck

    def clear(self) -> None:
        columns = "predicate VARCHAR, kind INTEGER, register UBIGINT, run DOUBLE"
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE sketches ({columns})")

    def take(self, rows: str) -> None:
        """Take in the rows of a relation."""
        self._duck.execute(_TAKE.format(rows=rows))

    def estimates(self, rows: Mapping[str, int]) -> dict[str | None, TripleCounts]:
        """By predicate, of which the number of rows is known; and, by None, of all together."""
        self._duck.execute(_JOIN)
        found: dict[str | None, dict[int, int]] = {}
        for predicate, kind, used, total in self._duck.execute(_SUMS).fetchall():
            found.setdefault(predicate, {})[kind] = estimate_cardinality(used, total)
        whole = sum(rows.values())
        return {name: _counts(rows[name] if name is not None else whole, each) for name, each in found.items()}

    def dump(self) -> dict[str, list[str]]:
        """The registers of each kind, by predicate, for `load`."""
        self._duck.execute(_JOIN)
        found: dict[str, list[bytearray]] = {}
        for predicate, kind, register, run in self._duck.execute("FROM sketches").fetchall():
            found.setdefault(predicate, [bytearray(REGISTERS) for _ in _KINDS])[kind][register] = int(run)
        return {predicate: [each.hex() for each in kinds] for predicate, kinds in found.items()}

    def load(self, dumped: Mapping[str, list[str]]) -> None:
        """Take in what `dump` gave."""
        rows = [
            (predicate, kind, register, float(run))
            for predicate, kinds in dumped.items()
            for kind, registers in enumerate(kinds)
            for register, run in enumerate(bytes.fromhex(registers))
            if run
        ]
        if not rows:
            return
        names = ("predicate", "kind", "register", "run")
        columns = zip(*rows, strict=True)
        self._duck.register("dumped", pa.table(dict(zip(names, map(list, columns), strict=True))))
        self._duck.execute("INSERT INTO sketches FROM dumped")
        self._duck.unregister("dumped")


def estimate_cardinality(used: int, total: float) -> int:
    """How many different values left so many registers used, with this sum of the inverse of their powers."""
    unused = REGISTERS - used
    rough = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / (total + unused)
    few = rough <= 2.5 * REGISTERS and unused > 0
    return round(REGISTERS * math.log(REGISTERS / unused) if few else rough)


def _counts(rows: int, found: Mapping[int, int]) -> TripleCounts:
    return TripleCounts(rows, min(rows, found[0]), min(rows, found[1]), min(rows, found[2]))


# Records: what was counted of a lake, beside it, so that the next process does not count it again.

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StatisticsRecord:
    """All up to a position of a table that had lost rows so many times."""

    upto: int
    removals: int
    rows: int
    facts: list[list[Any]]
    sketches: dict[str, list[str]]
    """By predicate, the registers of each kind in hexadecimal."""


class StatisticsFile:
    """One record in a file, which any process may replace by a newer one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._saved = 0

    def read(self) -> StatisticsRecord | None:
        """None if there is none, or none that can be read."""
        try:
            found: Mapping[str, Any] = orjson.loads(self._path.read_bytes())
            record = StatisticsRecord(**found)
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
        return abs(rows - self._saved) >= max(RECORDED_QUADS, self._saved // 5)

    def write(self, record: StatisticsRecord) -> None:
        """Replaces what there is. Where it cannot be written, the next process counts by itself."""
        self._saved = record.rows
        try:
            replace_file(self._path, orjson.dumps(record), durable=False)
        except OSError as error:
            logger.warning("statistics of the lake were not saved: %s", error)


# Censuses: what was counted of the whole lake, for those who look from outside.

_SUBJECTS = 1
"""The place of the sketch of subjects among those of a predicate."""


@dataclass(frozen=True)
class DatasetStatistics:
    """Triples are counted, predicates as of when they were last written down; subjects are estimated."""

    triples: int
    properties: int = 0
    subjects: int = 0
    predicates: tuple[tuple[str, int], ...] = ()
    """The most frequent, each with its triples."""


def dataset_statistics(triples: int, record: StatisticsRecord | None) -> DatasetStatistics:
    """Of a lake with so many triples, and of what was written down of it, if anything was."""
    if record is None:
        return DatasetStatistics(triples)
    rows = Counter[str]()
    for predicate, _, _, count, *_ in record.facts:
        rows[predicate] += count
    most = sorted(rows.items(), key=lambda each: (-each[1], each[0]))[:SAMPLE_TERMS]
    return DatasetStatistics(triples, len(rows), _estimate_subjects(record), tuple(most))


def _estimate_subjects(record: StatisticsRecord) -> int:
    """Of all predicates together: the sketch of a union has the greatest of each register."""
    union = bytearray(REGISTERS)
    for kinds in record.sketches.values():
        union = bytearray(map(max, union, bytes.fromhex(kinds[_SUBJECTS])))
    used = [run for run in union if run]
    return min(record.rows, estimate_cardinality(len(used), sum(2.0**-run for run in used)))
