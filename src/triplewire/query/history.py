"""History: SPARQL over everything that was ever published, answered in the process that asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import orjson
import pyarrow as pa

from triplewire.config import limits
from triplewire.errors import AnswerTooLarge, NotFound
from triplewire.lake.ports import Shelf, Snapshot
from triplewire.query.alarms import Alarm
from triplewire.query.compilers import Compiler
from triplewire.query.engines import Elsewhere, Engine
from triplewire.query.explanations import Explanation
from triplewire.query.formats import choose
from triplewire.query.outlooks import Outlook
from triplewire.query.requests import EXPLANATIONS, Bounds, QueryRequest
from triplewire.sparql import Compiled, Statistics
from triplewire.sparql.depths import ensure_depth
from triplewire.sparql.rules import planned


@dataclass(frozen=True)
class Answer:
    """The media type of an answer and its text, which is made while it is taken. It must be taken to its end, or
    closed, before the next query."""

    content_type: str
    chunks: Iterator[bytes]


class History:
    """Answers one query at a time with one engine."""

    def __init__(
        self,
        lake: Shelf,
        engine: Engine,
        bounds: Bounds | None = None,
        *,
        compiler: Compiler | None = None,
        spark_bytes: int | None = None,
    ) -> None:
        """`spark_bytes` is None where nobody else can be asked."""
        ensure_depth()
        self._lake = lake
        self._engine = engine
        self.bounds = bounds or Bounds()
        self._compiler = compiler or Compiler()
        self._spark_bytes = spark_bytes

    def answer(self, request: QueryRequest, alarm: Alarm) -> Answer:
        """Raises SparqlSyntax, Unsupported, NotAcceptable, NotFound or Elsewhere; and QueryLimit, now or while the
        answer is taken."""
        bounds = self.bounds.within(request.seconds)
        query = self._compiler.parsed(request)
        chosen = choose(query.form, request.accept, request.format)
        snapshot = self._at(request)
        if self._spark_bytes is not None and request.engine == "spark":
            raise Elsewhere
        # What is counted is counted of the lake as it is now, and tells of what is out of sight.
        told = request.moment is None and (request.sight is None or request.explain is None)
        statistics = self._engine.statistics(snapshot) if told else None
        began = perf_counter()
        plan = self._compiler.compiled(query, bounds, statistics, steady=request.sight is not None)
        seconds = perf_counter() - began
        if self._spark_bytes is not None and request.engine == "auto":
            self._ensure_small(plan, snapshot, self._spark_bytes)
        if request.explain is not None and request.sight is not None:
            batches = _counted(self._engine.batches(plan, snapshot, bounds, request.sight), bounds.rows, alarm)
            outlook = Outlook(self._compiler.dialect, query, plan, sum(each.num_rows for each in batches))
            return Answer(EXPLANATIONS[request.explain], iter([outlook.write(request.explain)]))
        if request.explain is not None:
            profile = self._engine.profile(plan, snapshot, bounds)
            made = planned(query, statistics or Statistics())
            explanation = Explanation(self._compiler.dialect, query, made, plan, seconds, profile)
            return Answer(EXPLANATIONS[request.explain], iter([explanation.write(request.explain)]))
        alarm.check()
        batches = _counted(self._engine.batches(plan, snapshot, bounds, request.sight), bounds.rows, alarm)
        chunks = chosen.write(plan.form, plan.projection, batches)
        return Answer(chosen.content_type, _measured(chunks, bounds.bytes))

    def _ensure_small(self, plan: Compiled, snapshot: Snapshot, most: int) -> None:
        """Raises Elsewhere where there is much to read: of a large lake, a query may need little."""
        if snapshot.size > most and sum(each.size for each in self._engine.scanned(plan, snapshot).files) > most:
            raise Elsewhere

    def _at(self, request: QueryRequest) -> Snapshot:
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

    def alarm(self, request: QueryRequest) -> Alarm:
        """Watches over the time of a request from now on."""
        return Alarm(self._engine, self.bounds.within(request.seconds).seconds)

    def answer_now(self, text: str) -> Mapping[str, Any]:
        """A SPARQL JSON results document."""
        request = QueryRequest(text, format="json")
        with self.alarm(request) as alarm:
            document: Mapping[str, Any] = orjson.loads(b"".join(self.answer(request, alarm).chunks))
        return document

    def close(self) -> None:
        self._engine.close()


def _counted(batches: Iterable[pa.RecordBatch], most: int, alarm: Alarm) -> Iterator[pa.RecordBatch]:
    count = 0
    for batch in batches:
        alarm.check()
        count += batch.num_rows
        if count > most:
            raise AnswerTooLarge(f"the answer has more than {most} rows; add a LIMIT")
        yield batch


def _measured(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """The chunks, in pieces that are small enough to be sent."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise AnswerTooLarge(f"the answer has more than {most} bytes; add a LIMIT")
        for start in range(0, len(chunk), limits.CHUNK_BYTES):
            yield chunk[start : start + limits.CHUNK_BYTES]
