"""Lakes that grow a file at a time, of events that are written as lines of N-Triples without the dot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.storage.lake.test_delta import entries
from triplewire.history.duckdb import DuckDbEngine
from triplewire.history.requests import QueryLimits
from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.sparql import Statistics, compile_query, parse_query
from triplewire.storage.lake.data_files import FileWriter, parquet_relation
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch, Snapshot, TableChange

E = "http://example.org/"
PREFIXES = f"PREFIX : <{E}>\nPREFIX xsd: <{XSD}>\n"
Rows = Counter[tuple[Any, ...]]


def iri(name: str) -> str:
    return f"<{E}{name}>"


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


def triple(subject: str, predicate: str, object_: str) -> str:
    """A line; what is no literal is the name of a resource."""
    return "\t".join((iri(subject), iri(predicate), object_ if object_.startswith(('"', "_")) else iri(object_)))


@dataclass
class Growing:
    """A lake in a folder. Each commit is one file."""

    path: Path
    commits: int = 0
    events: int = 0

    def grow(self, *events: list[str]) -> Snapshot:
        """Commit these events, each a list of lines."""
        made = [Event(f"{E}event/{self.events + n}", "\n".join(lines)) for n, lines in enumerate(events)]
        written = FileWriter(self.path).write(entries(*made, first=1 + self.events))
        self.commits, self.events = self.commits + 1, self.events + len(events)
        lake = DeltaLake(self.path)
        lake.commit(CommitBatch("q", self.commits, self.events), [written])
        return lake.files()

    def compact(self) -> Snapshot:
        """Put one file in place of all that there are."""
        return self._replace("")

    def lose(self, predicate: str) -> Snapshot:
        """The same, without the quads of a predicate."""
        return self._replace(f" WHERE predicate <> '{iri(predicate)}'", lost=True)

    def lose_type(self) -> Snapshot:
        """The same of what things are."""
        return self._replace(f" WHERE predicate <> '{RDF_TYPE}'", lost=True)

    def files(self) -> Snapshot:
        return DeltaLake(self.path).files()

    def _replace(self, condition: str, *, lost: bool = False) -> Snapshot:
        lake, writer = DeltaLake(self.path), FileWriter(self.path)
        found = lake.files()
        made = writer.write_quads(f"(FROM {parquet_relation(found.paths)}{condition})", "z")
        lake.replace(TableChange(found.files, (made,), lost=lost))
        return lake.files()


def asked(duck: DuckDbEngine, snapshot: Snapshot, text: str, statistics: Statistics | None = None) -> Rows:
    """The rows of an answer, as a bag, by the statistics that are given or else by those that the engine has."""
    known = duck.statistics(snapshot) if statistics is None else statistics
    compiled = compile_query(parse_query(PREFIXES + text), "duckdb", known)
    batches = duck.batches(compiled, snapshot, QueryLimits())
    return Counter(tuple(row.values()) for batch in batches for row in batch.to_pylist())
