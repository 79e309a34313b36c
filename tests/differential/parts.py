"""Parts: DuckDB with each row of `quads` in a part of its own, of which a query reads those that its scans need.

Nothing is read that does not have to be, so that a row that was passed over wrongly is missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import isnan
from typing import Any

import pyarrow as pa

from tests.conformance.engines.answers import answer
from tests.conformance.results import Answer
from tests.differential.data import Data
from tests.differential.engines import OnDuckDB
from triplewire.history.pruning import ScanRewriter, ZoneMaps
from triplewire.sparql import Statistics, compile_query, parse_query
from triplewire.storage.lake.data_files import RANGED
from triplewire.storage.lake.ports import ColumnRange, DataFile, Snapshot

SINGLE = Statistics(single=True)
"""All that is known of the data: no two of its events have one name."""


class OnParts(OnDuckDB):
    def take(self, data: Data) -> None:
        super().take(data)
        self._connection.execute(
            "CREATE OR REPLACE TABLE parts AS SELECT row_number() OVER () - 1 AS part, * FROM quads"
        )
        rows = pa.table(self._connection.sql("FROM parts ORDER BY part")).to_pylist()
        files = tuple(DataFile(str(number), 1, 1, dict(_ranges(row))) for number, row in enumerate(rows))
        self._snapshot = Snapshot("parts", 0, len(data.events), 0, -1, files)
        self.read = 0

    def ask(self, text: str) -> Answer:
        compiled = compile_query(parse_query(text), "duckdb", SINGLE)
        pruning = ScanRewriter(self._snapshot, ZoneMaps(self._snapshot.files), "duckdb", _source)
        placed, scanned = pruning.prune(compiled)
        self.read += sum(map(len, scanned.scans.values()))
        return answer(compiled, self._connection.sql(placed.sql).to_arrow_table())

    def ask_all(self, text: str) -> Answer:
        """Where everything is read."""
        return OnDuckDB.ask(self, text)


def _source(relation: str, alias: str, numbers: tuple[int, ...]) -> str:
    chosen = f"FROM parts WHERE part IN ({', '.join(map(str, numbers)) or 'NULL'})"
    return f"({chosen}{' AND quad = 0' if relation == 'events' else ''}) AS {alias}"


def _ranges(row: Mapping[str, Any]) -> Iterator[tuple[str, ColumnRange]]:
    """As files tell them: of what is not a number nothing is told."""
    for name in RANGED:
        value = row[name]
        if isinstance(value, datetime):
            value = value.replace(tzinfo=UTC)
        if not (isinstance(value, float) and isnan(value)):
            yield name, (value, value)
