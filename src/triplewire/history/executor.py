"""The executor answers one SPARQL query over history: parse, resolve ontologies and services, compile, run, format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import orjson
import pyarrow as pa

from triplewire.config.workers import CHUNK_BYTES
from triplewire.history.engines import Deadline, QueryEngine, WrongEngine
from triplewire.history.explain import QueryExplain, RedactedExplain
from triplewire.history.federation import resolve_services
from triplewire.history.formats import choose_format
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

# Ontologies: those that are loaded, as queries use them.


class OntologyTables:
    """What the registry holds, made into tables once for each of its versions. Not for several threads at once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._version = 0
        self._loaded: dict[str, LoadedOntology] = {}
        self._made: dict[tuple[str, ...], Ontology] = {}

    def of(self, names: Sequence[str] | None = None) -> Ontology:
        """The ontologies of these names as one; of None, all that are loaded, of which there may be none.

        Raises NotFound for a name that has none, InputError if they are too large together.
        """
        self._refresh()
        chosen = tuple(sorted(self._loaded if names is None else set(names)))
        if chosen not in self._made:
            self._made[chosen] = build_ontology(triple for name in chosen for triple in self._triples(name))
        return self._made[chosen]

    def _refresh(self) -> None:
        newest = self._registry.get(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES)
        version = newest.position if newest else 0
        if version != self._version:
            self._loaded = {change.key: ontology_from_change(change) for change in self._registry.list(ONTOLOGY)}
            self._made = {}
            self._version = version

    def _triples(self, name: str) -> Iterator[Triple]:
        if name not in self._loaded:
            raise NotFound(f"there is no ontology {name}; there are {', '.join(sorted(self._loaded)) or 'none'}")
        for line in self._loaded[name].text.split("\n"):
            subject, predicate, object_ = line.split("\t")
            yield subject, predicate, object_


# Compilers: from a request to what an engine runs.

RDFS = "rdfs"
_ENTAILMENTS = (None, "none", "simple", RDFS)


@dataclass(frozen=True)
class QueryCompiler:
    """Makes SQL in the dialect of one engine. `services` are the endpoints that SERVICE may ask, `ontologies` what
    entailment goes by."""

    dialect: Dialect = "duckdb"
    services: Collection[str] = ()
    ontologies: OntologyTables | None = None

    def parsed(self, request: HistoryRequest) -> Query:
        """The query over the dataset that the request names, under the entailment that it wishes for. Raises
        SparqlSyntax or Unsupported, and what `entailed` does."""
        if request.entailment not in _ENTAILMENTS:
            raise Unsupported(f"entailment={request.entailment}", hint="say rdfs, or leave it out")
        query = parse_query(request.text)
        if request.entailment == RDFS and self.ontologies is not None:
            query = rewrite_query(query, self.ontologies.of())
        if request.default_graphs is None and request.named_graphs is None:
            return query
        return replace(query, dataset=Dataset(_terms(request.default_graphs), _terms(request.named_graphs)))

    def compiled(
        self, query: Query, bounds: QueryLimits, statistics: Statistics | None = None, *, steady: bool = False
    ) -> CompiledQuery:
        """Raises Unsupported, and what other endpoints are the reason for."""
        return compile_query(resolve_services(query, self.services, bounds), self.dialect, statistics, steady=steady)


def _terms(addresses: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(iri(each) for each in addresses or ())


@dataclass(frozen=True)
class RenderedAnswer:
    """The media type of an answer and its text, which is made while it is taken. It must be taken to its end, or
    closed, before the next query."""

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
        """`spark_bytes` is None where nobody else can be asked."""
        ensure_recursion_limit()
        self._lake = lake
        self._engine = engine
        self.bounds = bounds or QueryLimits()
        self._compiler = compiler or QueryCompiler()
        self._spark_bytes = spark_bytes

    def answer(self, request: HistoryRequest, alarm: Deadline) -> RenderedAnswer:
        """Raises SparqlSyntax, Unsupported, NotAcceptable, NotFound or Elsewhere; and QueryLimit, now or while the
        answer is taken."""
        bounds = self.bounds.within(request.seconds)
        query = self._compiler.parsed(request)
        chosen = choose_format(query.form, request.accept, request.format)
        snapshot = self._at(request)
        if self._spark_bytes is not None and request.engine == "spark":
            raise WrongEngine
        # What is counted is counted of the lake as it is now, and tells of what is out of sight.
        told = request.moment is None and (request.sight is None or request.explain is None)
        statistics = self._engine.statistics(snapshot) if told else None
        began = perf_counter()
        plan = self._compiler.compiled(query, bounds, statistics, steady=request.sight is not None)
        seconds = perf_counter() - began
        if self._spark_bytes is not None and request.engine == "auto":
            self._ensure_small(plan, snapshot, self._spark_bytes)
        if request.explain is not None and request.sight is not None:
            batches = _limit_rows(self._engine.batches(plan, snapshot, bounds, request.sight), bounds.rows, alarm)
            outlook = RedactedExplain(self._compiler.dialect, query, plan, sum(each.num_rows for each in batches))
            return RenderedAnswer(EXPLAIN_FORMATS[request.explain], iter([outlook.write(request.explain)]))
        if request.explain is not None:
            profile = self._engine.profile(plan, snapshot, bounds)
            made = optimize_query(query, statistics or Statistics())
            explanation = QueryExplain(self._compiler.dialect, query, made, plan, seconds, profile)
            return RenderedAnswer(EXPLAIN_FORMATS[request.explain], iter([explanation.write(request.explain)]))
        alarm.check()
        batches = _limit_rows(self._engine.batches(plan, snapshot, bounds, request.sight), bounds.rows, alarm)
        chunks = chosen.write(plan.form, plan.projection, batches)
        return RenderedAnswer(chosen.content_type, _limit_bytes(chunks, bounds.bytes))

    def _ensure_small(self, plan: CompiledQuery, snapshot: Snapshot, most: int) -> None:
        """Raises Elsewhere where there is much to read: of a large lake, a query may need little."""
        if snapshot.size > most and sum(each.size for each in self._engine.scanned(plan, snapshot).files) > most:
            raise WrongEngine

    def _at(self, request: HistoryRequest) -> Snapshot:
        """The lake at the moment that is asked for. Raises NotFound."""
        try:
            return self._lake.files(request.moment)
        except NotFound as error:
            if request.sight is not None:
                raise
            raise NotFound(f"{error}; the newest version is {self._lake.files().version}") from error

    def prepare(self) -> bool:
        """Do one step of what makes later queries faster; whether there was one to do."""
        return self._engine.prepare(self._lake.files())

    def alarm(self, request: HistoryRequest) -> Deadline:
        """Watches over the time of a request from now on."""
        return Deadline(self._engine, self.bounds.within(request.seconds).seconds)

    def answer_now(self, text: str) -> Mapping[str, Any]:
        """A SPARQL JSON results document."""
        request = HistoryRequest(text, format="json")
        with self.alarm(request) as alarm:
            document: Mapping[str, Any] = orjson.loads(b"".join(self.answer(request, alarm).chunks))
        return document

    def close(self) -> None:
        self._engine.close()


def _limit_rows(batches: Iterable[pa.RecordBatch], most: int, alarm: Deadline) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in batches:
        alarm.check()
        count += batch.num_rows
        if count > most:
            raise AnswerTooLarge(f"the answer has more than {most} rows; add a LIMIT")
        yield batch


def _limit_bytes(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The chunks, in pieces that are small enough to be sent."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise AnswerTooLarge(f"the answer has more than {most} bytes; add a LIMIT")
        for start in range(0, len(chunk), CHUNK_BYTES):
            yield chunk[start : start + CHUNK_BYTES]
