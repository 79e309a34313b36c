"""The executor answers one SPARQL query over history: parse, resolve ontologies and services, compile, run, format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import orjson
import pyarrow as pa

from triplewire.config.workers import CHUNK_BYTES
from triplewire.history.engines import Deadline, DeadlineWatch, QueryEngine, WrongEngine
from triplewire.history.explain import QueryExplain, RedactedExplain
from triplewire.history.federation import resolve_services
from triplewire.history.formats.results import choose_format
from triplewire.history.requests import EXPLAIN_FORMATS, HistoryRequest, QueryLimits
from triplewire.model.errors import AnswerTooLarge, NotFound, Unsupported
from triplewire.model.terms import iri
from triplewire.sparql import CompiledQuery, Dialect, Query, Statistics, compile_query, parse_query
from triplewire.sparql.algebra import Dataset
from triplewire.sparql.entailment.ontologies import Ontology, build_ontology
from triplewire.sparql.entailment.rewriting import rewrite_query
from triplewire.sparql.optimizer import optimize_query
from triplewire.sparql.paths import Triple
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.storage.lake.ports import LakeReader, Snapshot
from triplewire.storage.registry.ontologies import (
    NEWEST_ONTOLOGIES,
    ONTOLOGIES_VERSION,
    ONTOLOGY,
    LoadedOntology,
    ontology_from_change,
)
from triplewire.storage.registry.ports import Registry


class OntologyTables:
    """The ontologies of the registry as lookup tables, built once for each version. Not thread-safe."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._version = 0
        self._loaded: dict[str, LoadedOntology] = {}
        self._tables: dict[tuple[str, ...], Ontology] = {}

    def get(self, names: Sequence[str] | None = None) -> Ontology:
        """Return the union of the named ontologies, of all for None.

        Raises NotFound for an unknown name, InputError if they are too large together.
        """
        self._refresh()
        chosen = tuple(sorted(self._loaded if names is None else set(names)))
        if chosen not in self._tables:
            self._tables[chosen] = build_ontology(triple for name in chosen for triple in self._triples(name))
        return self._tables[chosen]

    def _refresh(self) -> None:
        newest = self._registry.get(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES)
        version = newest.position if newest else 0
        if version != self._version:
            self._loaded = {change.key: ontology_from_change(change) for change in self._registry.list(ONTOLOGY)}
            self._tables = {}
            self._version = version

    def _triples(self, name: str) -> Iterator[Triple]:
        if name not in self._loaded:
            raise NotFound(f"there is no ontology {name}; there are {', '.join(sorted(self._loaded)) or 'none'}")
        for line in self._loaded[name].text.split("\n"):
            subject, predicate, object_ = line.split("\t")
            yield subject, predicate, object_


RDFS = "rdfs"
_ENTAILMENTS = (None, "none", "simple", RDFS)


@dataclass(frozen=True)
class QueryCompiler:
    """Compiles requests to SQL in the dialect of one engine. `services` are the endpoints that SERVICE may call,
    `ontologies` those for entailment."""

    dialect: Dialect = "duckdb"
    services: Collection[str] = ()
    ontologies: OntologyTables | None = None

    def parse(self, request: HistoryRequest) -> Query:
        """Parse a query, rewritten for the entailment and over the dataset of the request.

        Raises SparqlSyntax or Unsupported, and InputError for ontologies that are too large.
        """
        if request.entailment not in _ENTAILMENTS:
            raise Unsupported(f"entailment={request.entailment}", hint="use rdfs, or omit it")
        query = parse_query(request.text)
        if request.entailment == RDFS and self.ontologies is not None:
            query = rewrite_query(query, self.ontologies.get())
        if request.default_graphs is None and request.named_graphs is None:
            return query
        return replace(query, dataset=Dataset(_terms(request.default_graphs), _terms(request.named_graphs)))

    def compile(
        self, query: Query, bounds: QueryLimits, statistics: Statistics | None = None, *, steady: bool = False
    ) -> CompiledQuery:
        """Raises Unsupported, and the errors of other endpoints."""
        return compile_query(resolve_services(query, self.services, bounds), self.dialect, statistics, steady=steady)


def _terms(addresses: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(iri(each) for each in addresses or ())


@dataclass(frozen=True)
class RenderedAnswer:
    """The media type of an answer and its text, rendered while it is read.

    It must be read to its end, or closed, before the next query.
    """

    content_type: str
    chunks: Iterator[bytes]


class HistoryExecutor:
    """Answers one query at a time with one engine."""

    def __init__(
        self,
        lake: LakeReader,
        engine: QueryEngine,
        bounds: QueryLimits | None = None,
        *,
        compiler: QueryCompiler | None = None,
        spark_bytes: int | None = None,
    ) -> None:
        """Queries that read more than `spark_bytes` raise WrongEngine; None means that there is no other engine."""
        ensure_recursion_limit()
        self._lake = lake
        self._engine = engine
        self._watch = DeadlineWatch(engine)
        self.bounds = bounds or QueryLimits()
        self._compiler = compiler or QueryCompiler()
        self._spark_bytes = spark_bytes

    def answer(self, request: HistoryRequest, deadline: Deadline) -> RenderedAnswer:
        """Begin an answer.

        Raises SparqlSyntax, Unsupported, NotAcceptable, NotFound or WrongEngine; and QueryLimit, also while it is read.
        """
        bounds = self.bounds.within(request.seconds)
        query = self._compiler.parse(request)
        chosen = choose_format(query.form, request.accept, request.format)
        snapshot = self._snapshot(request)
        if self._spark_bytes is not None and request.engine == "spark":
            raise WrongEngine
        # Statistics describe the newest snapshot, and an EXPLAIN would reveal hidden data through them.
        usable = request.lake_version is None and (request.visibility is None or request.explain is None)
        statistics = self._engine.statistics(snapshot) if usable else None
        began = perf_counter()
        plan = self._compiler.compile(query, bounds, statistics, steady=request.visibility is not None)
        seconds = perf_counter() - began
        if self._spark_bytes is not None and request.engine == "auto":
            self._ensure_small(plan, snapshot, self._spark_bytes)
        if request.explain is not None and request.visibility is None:
            profile = self._engine.profile(plan, snapshot, bounds)
            planned = optimize_query(query, statistics or Statistics())
            profiled = QueryExplain(self._compiler.dialect, query, plan, planned, seconds, profile)
            return _render_explain(profiled, request.explain)
        deadline.check()
        batches = _limit_rows(self._engine.batches(plan, snapshot, bounds, request.visibility), bounds.rows, deadline)
        if request.explain is not None:
            rows = sum(each.num_rows for each in batches)
            planned = optimize_query(query, Statistics())
            explain = RedactedExplain(self._compiler.dialect, query, plan, planned, rows)
            return _render_explain(explain, request.explain)
        chunks = chosen.write(plan.form, plan.projection, batches)
        return RenderedAnswer(chosen.content_type, _limit_bytes(chunks, bounds.bytes))

    def _ensure_small(self, plan: CompiledQuery, snapshot: Snapshot, most: int) -> None:
        """Raises WrongEngine if the query reads more than `most` bytes; it may read little of a large lake."""
        if snapshot.size > most and sum(each.size for each in self._engine.scanned(plan, snapshot).files) > most:
            raise WrongEngine

    def _snapshot(self, request: HistoryRequest) -> Snapshot:
        """Return the version of the lake that is requested. Raises NotFound."""
        try:
            return self._lake.files(request.lake_version)
        except NotFound as error:
            if request.visibility is not None:
                raise
            raise NotFound(f"{error}; the newest version is {self._lake.files().version}") from error

    def prepare(self) -> bool:
        """Do one step of indexing for later queries; return whether there was one."""
        return self._engine.prepare(self._lake.files())

    def start_deadline(self, request: HistoryRequest) -> Deadline:
        return self._watch.start(self.bounds.within(request.seconds).seconds)

    def answer_now(self, text: str) -> Mapping[str, Any]:
        """Return a SPARQL JSON results document."""
        request = HistoryRequest(text, format="json")
        with self.start_deadline(request) as deadline:
            document: Mapping[str, Any] = orjson.loads(b"".join(self.answer(request, deadline).chunks))
        return document

    def close(self) -> None:
        self._engine.close()


def _render_explain(explain: QueryExplain | RedactedExplain, form: str) -> RenderedAnswer:
    return RenderedAnswer(EXPLAIN_FORMATS[form], iter([explain.write(form)]))


def _limit_rows(batches: Iterable[pa.RecordBatch], most: int, deadline: Deadline) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in batches:
        deadline.check()
        count += batch.num_rows
        if count > most:
            raise AnswerTooLarge(f"the answer has more than {most} rows; add a LIMIT")
        yield batch


def _limit_bytes(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Yield the chunks in pieces that are small enough to be sent."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise AnswerTooLarge(f"the answer has more than {most} bytes; add a LIMIT")
        for start in range(0, len(chunk), CHUNK_BYTES):
            yield chunk[start : start + CHUNK_BYTES]
