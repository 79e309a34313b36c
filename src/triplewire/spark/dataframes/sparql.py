"""The function `sparql`: a query over a lake as a frame of the calling program. Loads the compiler only when called."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from triplewire.model.errors import BadRequest

if TYPE_CHECKING:
    from triplewire.spark.dataframes.lakes import LakeReference
    from triplewire.spark.dataframes.query_plan import TermForms


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
    """The answer to a query as a frame of `spark`, computed when it is used.

    `lake` is a broker's data directory, or the lake's table. A SELECT has a column for each variable of its projection,
    null where it has no value; an ASK one row with the boolean `answer`; CONSTRUCT and DESCRIBE have `subject`,
    `predicate` and `object`. `terms` says how these come: as `text`, canonical N-Triples; `plain`, what STR() gives;
    `number`, doubles; `time`, timestamps; or by name, `{"value": "number"}`, the others as text. Paths of any length
    (`+`, `*`) are followed right away, by jobs of `spark`. The session stays as it is, and executors need
    nothing of Triplewire.

    Raises SparqlSyntax and Unsupported for the query, NotFound for the lake or its version, BadRequest for the rest.
    """
    # Executors load this package to read and to publish, and compile nothing.
    from triplewire.spark.dataframes.query_plan import FrameQuery, build_frame

    if not isinstance(spark, SparkSession):
        raise BadRequest(f"spark must be a SparkSession of this process, not {type(spark)}")
    return build_frame(spark, FrameQuery(lake, query, entailment, version, as_of, terms))
