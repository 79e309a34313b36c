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
"""New quads from which on a query process saves its statistics for the next one: fewer are counted again in a
second."""

SAMPLE_TERMS: Final = 100
"""The most frequent predicates, and classes, in the description of a stream or of the lake."""

REGISTERS = 256
"""Registers of a sketch. They estimate within 7 percent, enough to choose a join order."""

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
    """HyperLogLog sketches by predicate, in a table of one connection."""

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck

    def clear(self) -> None:
        columns = "predicate VARCHAR, kind INTEGER, register UBIGINT, run DOUBLE"
        self._duck.execute(f"CREATE OR REPLACE TEMP TABLE sketches ({columns})")

    def add(self, rows: str) -> None:
        """Add the rows of a relation."""
        self._duck.execute(_TAKE.format(rows=rows))

    def estimate(self, rows: Mapping[str, int]) -> dict[str | None, TripleCounts]:
        """Return counts by predicate, given their rows, and by None those of all together."""
        self._duck.execute(_JOIN)
        cardinalities: dict[str | None, dict[int, int]] = {}
        for predicate, kind, used, total in self._duck.execute(_SUMS).fetchall():
            cardinalities.setdefault(predicate, {})[kind] = estimate_cardinality(used, total)
        whole = sum(rows.values())
        return {name: _counts(rows[name] if name is not None else whole, each) for name, each in cardinalities.items()}

    def dump(self) -> dict[str, list[str]]:
        """Return the registers of each kind, by predicate, for `load`."""
        self._duck.execute(_JOIN)
        found: dict[str, list[bytearray]] = {}
        for predicate, kind, register, run in self._duck.execute("FROM sketches").fetchall():
            found.setdefault(predicate, [bytearray(REGISTERS) for _ in _KINDS])[kind][register] = int(run)
        return {predicate: [each.hex() for each in kinds] for predicate, kinds in found.items()}

    def load(self, dumped: Mapping[str, list[str]]) -> None:
        """Add registers that `dump` returned."""
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
    """Return the number of distinct values from the used registers and the sum of their inverse powers."""
    unused = REGISTERS - used
    rough = 0.7213 / (1 + 1.079 / REGISTERS) * REGISTERS**2 / (total + unused)
    few = rough <= 2.5 * REGISTERS and unused > 0
    return round(REGISTERS * math.log(REGISTERS / unused) if few else rough)


def _counts(rows: int, found: Mapping[int, int]) -> TripleCounts:
    return TripleCounts(rows, min(rows, found[0]), min(rows, found[1]), min(rows, found[2]))


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StatisticsRecord:
    """Statistics of the lake up to a position, valid for one number of removals."""

    position: int
    removals: int
    rows: int
    facts: list[list[Any]]
    sketches: dict[str, list[str]]
    """The registers of each kind in hexadecimal, by predicate."""


class StatisticsFile:
    """A file with one record, which any query process may replace."""

    def __init__(self, path: Path, least_growth: int = RECORDED_QUADS) -> None:
        self._path = path
        self._least_growth = least_growth
        self._saved = 0

    def read(self) -> StatisticsRecord | None:
        """Return the record, None if there is none that can be read."""
        try:
            found: Mapping[str, Any] = orjson.loads(self._path.read_bytes())
            record = StatisticsRecord(**found)
        except (OSError, ValueError, TypeError):
            return None
        self._saved = record.rows
        return record

    def forget(self) -> None:
        """Delete the record: it counts rows that were removed."""
        self._saved = 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def is_worthwhile(self, rows: int) -> bool:
        """Whether to write a record of so many rows: not for few, and not again for few more."""
        return abs(rows - self._saved) >= max(self._least_growth, self._saved // 5)

    def write(self, record: StatisticsRecord) -> None:
        """Replace the record. If that fails, the next process counts by itself."""
        self._saved = record.rows
        try:
            replace_file(self._path, orjson.dumps(record), durable=False)
        except OSError as error:
            logger.warning("statistics of the lake were not saved: %s", error)


_SUBJECTS = 1
"""The index of the sketch of subjects among those of a predicate."""


@dataclass(frozen=True)
class DatasetStatistics:
    """A summary of the lake: triples are exact, predicates as of the last record, subjects estimated."""

    triples: int
    properties: int = 0
    subjects: int = 0
    predicates: tuple[tuple[str, int], ...] = ()
    """The most frequent predicates, each with its triples."""


def dataset_statistics(triples: int, record: StatisticsRecord | None) -> DatasetStatistics:
    """Summarize a lake from its number of triples and its last record."""
    if record is None:
        return DatasetStatistics(triples)
    rows = Counter[str]()
    for predicate, _, _, count, *_ in record.facts:
        rows[predicate] += count
    most = sorted(rows.items(), key=lambda each: (-each[1], each[0]))[:SAMPLE_TERMS]
    return DatasetStatistics(triples, len(rows), _estimate_subjects(record), tuple(most))


def _estimate_subjects(record: StatisticsRecord) -> int:
    """Estimate the subjects of all predicates: the sketch of a union has the maximum of each register."""
    union = bytearray(REGISTERS)
    for kinds in record.sketches.values():
        union = bytearray(map(max, union, bytes.fromhex(kinds[_SUBJECTS])))
    used = [run for run in union if run]
    return min(record.rows, estimate_cardinality(len(used), sum(2.0**-run for run in used)))
