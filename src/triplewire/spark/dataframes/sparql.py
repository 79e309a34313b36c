"""The function `sparql`: a query over a lake as a frame of the calling program, with terms in a chosen form.

```
the program's session                         a session of our own, beside it
sparql(spark, lake, query) ──────────────▶    settings that queries need, relations quads and events
                                              SPARQL ─▶ SQL ─▶ an analysed plan
a frame of this session   ◀── its plan ──     gone, with everything that was set in it
```
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import exp

from triplewire.history.executor import RDFS, QueryCompiler
from triplewire.history.requests import HistoryRequest, QueryLimits
from triplewire.model.errors import BadRequest
from triplewire.spark import query_engine as engine
from triplewire.spark.dataframes.lakes import LakeReference, open_ontologies, open_snapshot
from triplewire.sparql import CompiledQuery, facets_of, to_sql
from triplewire.sparql.compiler.facets import lexical_body, unescape
from triplewire.sparql.queries import ensure_recursion_limit
from triplewire.sparql.sql import Sql, call, case, every, length, number, text

TermForm: TypeAlias = Literal["text", "plain", "number", "time"]
"""`text` is canonical N-Triples, from which nothing is lost; `plain` what STR() gives; `number` and `time` are doubles
and timestamps, null for other terms."""

TermForms: TypeAlias = TermForm | Mapping[str, TermForm]
"""One for all columns, or one for each; a column that is not named is text."""


def sparql(
    spark: SparkSession,
    lake: LakeReference,
    query: str,
    *,
    entailment: str | None = None,
    version: int | None = None,
    as_of: datetime | str | None = None,
    terms: TermForms = "text",
) -> DataFrame:
    """Return the answer to a query as a frame of `spark`, computed when it is used.

    `lake` is a broker's data directory, or the lake's table. A SELECT has a column for each variable of its projection,
    null where it has no value; an ASK one row with the boolean `answer`; CONSTRUCT and DESCRIBE have `subject`,
    `predicate` and `object`. `terms` says how these come: as `text`, canonical N-Triples; `plain`, what STR() gives;
    `number`, doubles; `time`, timestamps; or by name, `{"value": "number"}`, the others as text. Paths of any length
    (`+`, `*`) are followed right away, by jobs of `spark`. The session stays as it is, and executors need
    nothing of Triplewire.

    Raises SparqlSyntax and Unsupported for the query, NotFound for the lake or its version, BadRequest for the rest.
    """
    if not isinstance(spark, SparkSession):
        raise BadRequest(f"spark must be a SparkSession of this process, not {type(spark)}")
    ensure_recursion_limit()
    snapshot = open_snapshot(lake, version, as_of)
    compiled = _compile_query(lake, query, entailment)
    session = spark.newSession()
    engine.configure_session(session)
    placed, _ = engine.prune_query(session, compiled, snapshot)
    names = _column_names(compiled)
    answer = engine.answer_frame(session, placed)
    if compiled.form != "ask":
        answer = format_columns(answer.select(*answer.columns[: len(names)]), names, terms)
    return _hand_over(answer, spark).toDF(*names)


def _compile_query(lake: LakeReference, query: str, entailment: str | None) -> CompiledQuery:
    ontologies = open_ontologies(lake) if entailment == RDFS else None
    compiler = QueryCompiler("spark", ontologies=ontologies)
    return compiler.compile(compiler.parse(HistoryRequest(query, entailment=entailment)), QueryLimits())


def _column_names(compiled: CompiledQuery) -> tuple[str, ...]:
    if compiled.form == "ask":
        return ("answer",)
    return compiled.projection if compiled.form == "select" else ("subject", "predicate", "object")


def _hand_over(frame: DataFrame, to: SparkSession) -> DataFrame:
    """Return the frame in another session. Its plan is analysed already, so that the settings there do not matter."""
    name = f"triplewire_{uuid4().hex}"
    frame.createGlobalTempView(name)
    try:
        return to.table(f"global_temp.{name}")
    finally:
        to.catalog.dropGlobalTempView(name)


def format_columns(frame: DataFrame, names: Sequence[str], forms: TermForms) -> DataFrame:
    """A frame whose columns hold terms as text, each in its form. `names` are what its columns are to be called.

    The session must keep time in UTC. Raises BadRequest for a form or a name that is not known.
    """
    wanted = dict.fromkeys(names, forms) if isinstance(forms, str) else dict(forms)
    if unknown := set(wanted) - set(names):
        raise BadRequest(f"terms names {', '.join(sorted(unknown))}; the columns are {', '.join(names) or 'none'}")
    columns = zip(frame.columns, names, strict=True)
    return frame.select(*(_format_column(column, wanted.get(name, "text")).alias(column) for column, name in columns))


def _format_column(column: str, form: str) -> Column:
    if form not in _FORMS:
        raise BadRequest(f"terms can come as {', '.join(_FORMS)}, not as {form!r}")
    made = F.expr(to_sql(_FORMS[form](exp.column(column, quoted=True)), "spark"))
    return made.cast("timestamp") if form == "time" else made


def _plain_text(term: Sql) -> Sql:
    address = call("SUBSTRING", term, number(2), exp.Sub(this=length(term), expression=number(2)))
    iri = every(call("TW_STARTS", term, text("<")), exp.Not(this=call("TW_STARTS", term, text("<<"))))
    return case((call("TW_STARTS", term, text('"')), unescape(lexical_body(term))), (iri, address), default=term)


_FORMS: Mapping[str, Callable[[Sql], Sql]] = {
    "text": lambda term: term,
    "plain": _plain_text,
    "number": lambda term: facets_of(term, ["number"])["number"],
    "time": lambda term: facets_of(term, ["time"])["time"],
}
