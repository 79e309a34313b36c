"""Plans: SPARQL over a lake as a frame of the program that asks.

```
the program's session                         a session of our own, beside it
sparql(spark, lake, query) ──────────────▶    settings that queries need, relations quads and events
                                              SPARQL ─▶ SQL ─▶ an analysed plan
a frame of this session   ◀── its plan ──     gone, with everything that was set in it
```
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from triplewire.history.executor import RDFS, QueryCompiler
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.query import spark as engine
from triplewire.spark.lakes import Named, snapshot_of
from triplewire.spark.ontologies import ontologies_of
from triplewire.spark.terms import Forms, formed
from triplewire.sparql import CompiledQuery
from triplewire.sparql.queries import ensure_recursion_limit


@dataclass(frozen=True)
class Question:
    """What is asked, of which version of a lake, and how terms are to come out."""

    lake: Named
    query: str
    entailment: str | None = None
    version: int | None = None
    as_of: datetime | str | None = None
    terms: Forms = "text"


def frame_of(spark: SparkSession, asked: Question) -> DataFrame:
    """See `sparql`."""
    ensure_recursion_limit()
    snapshot = snapshot_of(asked.lake, asked.version, asked.as_of)
    compiled = _compiled(asked)
    session = spark.newSession()
    engine.configure(session)
    placed, _ = engine.pruned(session, compiled, snapshot)
    names = _names(compiled)
    answer = engine.answer(session, placed)
    if compiled.form != "ask":
        answer = formed(answer.select(*answer.columns[: len(names)]), names, asked.terms)
    return _handed(answer, spark).toDF(*names)


def _compiled(asked: Question) -> CompiledQuery:
    ontologies = ontologies_of(asked.lake) if asked.entailment == RDFS else None
    compiler = QueryCompiler("spark", ontologies=ontologies)
    return compiler.compiled(compiler.parsed(HistoryRequest(asked.query, entailment=asked.entailment)), QueryLimits())


def _names(compiled: CompiledQuery) -> tuple[str, ...]:
    if compiled.form == "ask":
        return ("answer",)
    return compiled.projection if compiled.form == "select" else ("subject", "predicate", "object")


def _handed(frame: DataFrame, to: SparkSession) -> DataFrame:
    """The frame as one of another session. Its plan is analysed already, so that the settings there do not matter."""
    name = f"triplewire_{uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        return to.table(f"global_temp.{name}")
    finally:
        to.catalog.dropGlobalTempView(name)
