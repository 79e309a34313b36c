"""Static data: the graphs that a query reads outside of its windows, as they were when it was registered.

| `FROM` | is |
|---|---|
| `<http://…/ontologies/rooms>`, or the IRI of what is an `owl:Ontology` in it | the triples of an ontology |
| `<http://…/streams/places>` | everything that was published to a stream |
| any other IRI | the events with this id |
| nothing | everything that was published |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

import duckdb
import pyarrow as pa

from triplewire.model import ENTRIES
from triplewire.model.errors import NotFound, QueryLimit
from triplewire.model.events import drop_opaque_payloads
from triplewire.model.terms import RDF_TYPE
from triplewire.sparql import QUADS, explode, to_sql
from triplewire.sparql.algebra import Dataset
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.entailment.ontologies import OWL
from triplewire.storage.lake.data_files import connect_duckdb, parquet_relation
from triplewire.storage.lake.ports import LakeReader
from triplewire.storage.log.ports import Log
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology, ontology_from_change
from triplewire.storage.registry.ports import Registry, RegistryChange

STATIC_QUADS: Final = 500_000
"""Quads of static data that a query with windows may read, loaded when it is registered: at worst some 250 MB."""


_NAMED = re.compile(r"<.*/(streams|ontologies)/([A-Za-z0-9][A-Za-z0-9._~-]*)>")
_PAGE = 5_000
_TIMES = ("object_time", "time", "received")
_TERMS = ("subject", "predicate", "object", *(name for name in QUADS if name.startswith("object_")))


class StaticData(Protocol):
    """The published data and ontologies as of a position."""

    def quads(self, dataset: Dataset, position: int) -> pa.Table:
        """Return the static data of a query that was registered at a position, with the columns of `quads`. Each name
        of a dataset is a graph. Raises NotFound for an unknown name, and QueryLimit for too much data."""


class NoStaticData:
    """Static data that is empty."""

    def quads(self, dataset: Dataset, position: int) -> pa.Table:
        raise NotFound("there is no static data here; put every pattern into a WINDOW")


@dataclass(frozen=True)
class PublishedStaticData:
    """The lake, what the log has beyond it, and the registry. Opens an engine of its own for each query."""

    lake: LakeReader
    log: Log
    registry: Registry
    limit: int = STATIC_QUADS
    """Quads that one query may read."""

    def quads(self, dataset: Dataset, position: int) -> pa.Table:
        duck = connect_duckdb()
        try:
            register_functions(duck)
            return self._quads(duck, dataset, position)
        finally:
            duck.close()

    def _quads(self, duck: duckdb.DuckDBPyConnection, dataset: Dataset, position: int) -> pa.Table:
        if dataset.default is None and dataset.named is None:
            return self._read_limited(duck, self._published(duck, position, "true"), ordered="position, quad")
        names = dict.fromkeys((*(dataset.default or ()), *(dataset.named or ())))
        parts = [self._graph(duck, name, number, position) for number, name in enumerate(names, start=1)]
        return self._check_size(pa.concat_tables(parts))

    def _graph(self, duck: duckdb.DuckDBPyConnection, name: str, number: int, position: int) -> pa.Table:
        """Return the data of a name as one graph, each triple once."""
        found = self._source(duck, name, position)
        terms = ", ".join(_TERMS)
        rest = ", ".join(
            f"CAST(NULL AS {'TIMESTAMP' if each in _TIMES else 'VARCHAR'}) AS {each}" for each in QUADS[11:]
        )
        duck.register("names", pa.table({"graph": [name]}))
        graph = f"""
            SELECT CAST({number} AS BIGINT) AS position, CAST(row_number() OVER () - 1 AS INTEGER) AS quad,
                (SELECT graph FROM names) AS graph, {terms}, {rest}
            FROM (SELECT DISTINCT {terms} FROM ({found}) ORDER BY subject, predicate, object)"""
        table = self._read_limited(duck, graph, ordered="quad")
        if not table.num_rows:
            raise NotFound(f"there is nothing by the name {name}: no stream, ontology or event")
        return table

    def _read_limited(self, duck: duckdb.DuckDBPyConnection, sql: str, *, ordered: str) -> pa.Table:
        rows = duck.sql(f"SELECT * FROM ({sql}) ORDER BY {ordered} LIMIT {self.limit + 1}")
        return self._check_size(pa.table(rows))

    def _check_size(self, quads: pa.Table) -> pa.Table:
        if quads.num_rows > self.limit:
            raise QueryLimit(
                f"what the query reads outside of its windows has more than {self.limit} quads; "
                "name what it needs by FROM"
            )
        return quads

    def _source(self, duck: duckdb.DuckDBPyConnection, name: str, position: int) -> str:
        found = _NAMED.fullmatch(name)
        kind, word = (found[1], found[2]) if found else ("", "")
        loaded = self._ontology(name, word if kind == "ontologies" else None, position)
        if loaded is not None:
            duck.register("entries", _ontology_entry(loaded, name))
            return explode_sql()
        column, value = ("stream", word) if kind == "streams" else ("graph", name)
        duck.register("wanted", pa.table({"value": [value]}))
        return self._published(duck, position, f"{column} = (SELECT value FROM wanted)")

    def _published(self, duck: duckdb.DuckDBPyConnection, position: int, condition: str) -> str:
        """Return the SQL for the quads of the lake, and of the log beyond it."""
        snapshot = self.lake.files()
        duck.register("entries", self._beyond(snapshot.position, position))
        parts = [f"SELECT * FROM ({explode_sql()}) WHERE {condition}"]
        if snapshot.files:
            columns = ", ".join(f"CAST({name} AS TIMESTAMP) AS {name}" if name in _TIMES else name for name in QUADS)
            within = f"position <= {position} AND {condition}"
            parts.append(f"SELECT {columns} FROM {parquet_relation(snapshot.paths)} WHERE {within}")
        return " UNION ALL ".join(parts)

    def _beyond(self, after: int, through: int) -> pa.Table:
        pages = [ENTRIES.empty_table()]
        while after < through:
            page = self.log.read(after, through, _PAGE)
            pages.append(drop_opaque_payloads(page))
            after = page["position"][-1].as_py() if page.num_rows == _PAGE else through
        return pa.concat_tables(pages)

    def _ontology(self, iri: str, name: str | None, position: int) -> LoadedOntology | None:
        """Return an ontology as it was at a position: by its name, or by the IRI that it declares."""
        if name is not None:
            return self._loaded(lambda change: change.key == name, self.registry.get(ONTOLOGY, name), position)
        said = f"{iri}\t{RDF_TYPE}\t<{OWL}Ontology>"

        def is_it(change: RegistryChange) -> bool:
            return said in ((change.value or {}).get("text") or "").split("\n")

        found = next(filter(is_it, self.registry.list(ONTOLOGY)), None)
        return None if found is None else self._loaded(lambda change: change.key == found.key, found, position)

    def _loaded(
        self, wanted: Callable[[RegistryChange], bool], newest: RegistryChange | None, position: int
    ) -> LoadedOntology | None:
        if newest is not None and newest.position > position:
            newest = self._earlier(wanted, position)
        return None if newest is None or newest.value is None else ontology_from_change(newest)

    def _earlier(self, wanted: Callable[[RegistryChange], bool], position: int) -> RegistryChange | None:
        """Return the last change up to a position, for an ontology that was replaced since."""
        found, after = None, 0
        while page := self.registry.changes(after, position, _PAGE):
            found = next((each for each in reversed(page) if each.kind == ONTOLOGY and wanted(each)), found)
            after = page[-1].position
        return found


@lru_cache(maxsize=64)
def explode_sql(*columns: str) -> str:
    """Return the SQL for some columns of the quads of the table `entries`; for all of them, if none is named."""
    return to_sql(explode("entries", columns or QUADS), "duckdb")


def _ontology_entry(loaded: LoadedOntology, name: str) -> pa.Table:
    numbers = dict.fromkeys(("position", "time", "received"), 0)
    row = {**numbers, "stream": "", "event": name[1:-1], "text": loaded.text, "syntax": ""}
    return pa.Table.from_pylist([row], schema=ENTRIES)


@dataclass(frozen=True)
class StaticTable:
    """The static data of one query as a table, loaded once."""

    duck: duckdb.DuckDBPyConnection
    table: str

    @classmethod
    def load(cls, duck: duckdb.DuckDBPyConnection, table: str, quads: pa.Table) -> StaticTable:
        duck.register("loading", quads)
        duck.execute(f"CREATE OR REPLACE TABLE {table} AS FROM loading")
        duck.unregister("loading")
        return cls(duck, table)

    def show(self) -> None:
        """Let the relations `quads` and `events` be this table."""
        self.duck.execute(f"CREATE OR REPLACE TEMP VIEW quads AS FROM {self.table}")
        self.duck.execute("CREATE OR REPLACE TEMP VIEW events AS FROM quads WHERE quad = 0")

    def drop(self) -> None:
        self.duck.execute(f"DROP TABLE IF EXISTS {self.table}")
