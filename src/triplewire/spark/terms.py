"""Terms: how they become columns of a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from triplewire.model.errors import BadRequest
from triplewire.sparql import facets_of, to_sql
from triplewire.sparql.compiler.facets import lexical_body, unescape
from triplewire.sparql.sql import Sql, call, case, every, length, number, text

Form: TypeAlias = Literal["text", "plain", "number", "time"]
"""`text` is canonical N-Triples, from which nothing is lost; `plain` what STR() gives; `number` and `time` are doubles
and timestamps, null for other terms."""

Forms: TypeAlias = Form | Mapping[str, Form]
"""One for all columns, or one for each; a column that is not named is text."""


def formed(frame: DataFrame, names: Sequence[str], forms: Forms) -> DataFrame:
    """A frame whose columns hold terms as text, each in its form. `names` are what its columns are to be called.

    The session must keep time in UTC. Raises BadRequest for a form or a name that is not known.
    """
    wanted = dict.fromkeys(names, forms) if isinstance(forms, str) else dict(forms)
    if unknown := set(wanted) - set(names):
        raise BadRequest(f"terms names {', '.join(sorted(unknown))}; the columns are {', '.join(names) or 'none'}")
    columns = zip(frame.columns, names, strict=True)
    return frame.select(*(_as(column, wanted.get(name, "text")).alias(column) for column, name in columns))


def _as(column: str, form: str) -> Column:
    if form not in _FORMS:
        raise BadRequest(f"terms can come as {', '.join(_FORMS)}, not as {form!r}")
    made = F.expr(to_sql(_FORMS[form](exp.column(column, quoted=True)), "spark"))
    return made.cast("timestamp") if form == "time" else made


def _plain(term: Sql) -> Sql:
    address = call("SUBSTRING", term, number(2), exp.Sub(this=length(term), expression=number(2)))
    iri = every(call("TW_STARTS", term, text("<")), exp.Not(this=call("TW_STARTS", term, text("<<"))))
    return case((call("TW_STARTS", term, text('"')), unescape(lexical_body(term))), (iri, address), default=term)


_FORMS: Mapping[str, Callable[[Sql], Sql]] = {
    "text": lambda term: term,
    "plain": _plain,
    "number": lambda term: facets_of(term, ["number"])["number"],
    "time": lambda term: facets_of(term, ["time"])["time"],
}
