"""Window plans: a query with windows compiled to SQL over its windows and static data.

The edge loads this module to check registrations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import sqlglot
from sqlglot import exp

from triplewire import sparql
from triplewire.model.errors import Unsupported
from triplewire.model.subscriptions import ReportStrategy
from triplewire.sparql.algebra import VOLATILE
from triplewire.sparql.compiler.facets import FACETS
from triplewire.sparql.construct import construct_to_select
from triplewire.sparql.traversal import iterate_parts, pattern_variables

_NOW = sparql.Apply("now", ())
_TRIPLE = frozenset({"subject", "predicate", "object", *(f"object_{name}" for name in FACETS)})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class WindowPlan:
    """A query over windows, compiled as a SELECT, also for a CONSTRUCT."""

    registration: sparql.Registration
    report: ReportStrategy
    template: tuple[sparql.Pattern, ...] | None
    """The template of a CONSTRUCT."""
    names: tuple[str, ...]
    """The variables that a solution has terms for, in order."""
    compiled: sparql.CompiledQuery
    columns: frozenset[str]
    """The columns of `quads` that it reads."""
    reads_static: bool
    """Whether it reads static data."""
    timed: bool
    """Whether it calls NOW()."""

    @property
    def windows(self) -> tuple[sparql.WindowClause, ...]:
        return self.registration.windows

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.stream for each in self.windows))

    @property
    def fresh(self) -> bool:
        """Whether every solution makes blank nodes of its own."""
        return any(name.startswith("_:") for each in self.template or () for name in pattern_variables(each))

    @property
    def triples(self) -> bool:
        """Whether it reads only triples, and no events: then duplicates can be dropped."""
        return self.columns <= _TRIPLE

    def sql(self, moment: int) -> str:
        """Return the SQL for a moment, which is the value of NOW()."""
        if not self.timed:
            return self.compiled.sql
        return _compile(self.registration, _EPOCH + timedelta(microseconds=moment)).sql


@lru_cache(maxsize=512)
def plan_windows(text: str) -> WindowPlan:
    """Compile a query with windows. Raises what `parse_registration` raises, and Unsupported for a query without
    windows, for one with volatile functions, and for a CONSTRUCT that never makes a triple."""
    registration = sparql.parse_registration(text)
    if registration.report is None:
        raise Unsupported("a query without windows", hint="it is answered by combinations of triples")
    query = registration.query
    for each in iterate_parts(query):
        if isinstance(each, sparql.Apply) and each.op in VOLATILE:
            raise Unsupported(each.op.upper(), hint="what a window answers is the same whenever it is asked")
    select = replace(construct_to_select(query), dataset=query.dataset) if query.form == "construct" else query
    selected = replace(registration, query=select)
    compiled = _compile(selected, _EPOCH)
    tree = sqlglot.parse_one(compiled.sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    return WindowPlan(
        registration=selected,
        report=registration.report,
        template=query.template if query.form == "construct" else None,
        names=selected.query.projection,
        compiled=compiled,
        columns=sparql.facets_used(tree),
        reads_static=any(each.name in ("quads", "events") for each in tree.find_all(exp.Table)),
        timed=_NOW in iterate_parts(query),
    )


def _compile(registration: sparql.Registration, now: datetime) -> sparql.CompiledQuery:
    """Compile so that the answer is the same byte by byte, however the contents came together."""
    return sparql.compile_windows(registration, "duckdb", now=now, steady=True)
