"""Queries: a whole query as SQL for the engine that runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from triplewire.model.terms import XSD, literal
from triplewire.sparql.algebra import Apply, Query
from triplewire.sparql.compile.closures import Closure
from triplewire.sparql.compile.contexts import Build, Context
from triplewire.sparql.compile.definitions import definitions, with_definitions
from triplewire.sparql.compile.forms import formed
from triplewire.sparql.compile.operators import operated
from triplewire.sparql.compile.readings import readings
from triplewire.sparql.compile.statics import Known, static
from triplewire.sparql.compile.values import Value
from triplewire.sparql.dialects import Dialect, to_sql
from triplewire.sparql.readings import Reading
from triplewire.sparql.rewriting import parts
from triplewire.sparql.rules import planned
from triplewire.sparql.statistics import Statistics
from triplewire.sparql.structures import Template, lift, template

NOTHING = Statistics()
"""Of data of which nothing is known."""


@dataclass(frozen=True)
class Step:
    """A relation to be made, under its name, before the query runs. With `following` it is a closure: that query gives
    the pairs that one step more connects, of what the relation `known` holds, until there are no new ones."""

    name: str
    sql: str
    known: str = ""
    following: str = ""


@dataclass(frozen=True)
class Compiled:
    """What an engine runs: the steps in order, then the query.

    A SELECT has one column `v0`, `v1`, … for each variable of the projection, or the column `unit`; an ASK one boolean
    column `answer`; a CONSTRUCT or DESCRIBE the columns `subject`, `predicate` and `object`."""

    form: Literal["select", "ask", "construct", "describe"]
    projection: tuple[str, ...]
    sql: str
    steps: tuple[Step, ...] = ()
    readings: tuple[Reading, ...] = ()
    """Which rows each scan can use. What is scanned without being named here can use any."""


def compile_query(
    query: Query,
    dialect: Dialect,
    statistics: Statistics | None = None,
    now: datetime | None = None,
    *,
    steady: bool = False,
    windows: tuple[str, ...] = (),
) -> Compiled:
    """The query over the relations `quads` and `events`. `now` is what NOW() gives. If `steady`, an answer is the same
    byte by byte whatever the plan: wherever SPARQL leaves an order open, that of texts is taken. What stands inside of
    WINDOW is asked of `window_0`, `window_1`, …, by the place of its name in `windows`."""
    known = statistics or NOTHING
    lifted = None if dialect == "spark" or Apply("now", ()) in parts(query) else lift(query)
    if lifted is None:
        return compile_afresh(query, dialect, known, now or datetime.now(UTC), steady=steady, windows=windows)
    found, sql = _template(lifted.structure, known, frozenset(lifted.fillings), steady, windows)
    if sql is None:
        return compile_afresh(query, dialect, known, datetime.now(UTC), steady=steady, windows=windows)
    read = tuple(each.filled(lifted.fillings) for each in found.readings)
    return replace(found, sql=sql.filled(lifted.fillings), readings=read)


@lru_cache(maxsize=512)
def _template(
    structure: Query, statistics: Statistics, slots: frozenset[str], steady: bool, windows: tuple[str, ...]
) -> tuple[Compiled, Template | None]:
    """What queries of one structure share, for DuckDB."""
    compiled = compile_afresh(structure, "duckdb", statistics, datetime.now(UTC), steady=steady, windows=windows)
    return compiled, template(compiled.sql, slots)


def compile_afresh(
    query: Query,
    dialect: Dialect,
    known: Statistics,
    now: datetime,
    *,
    steady: bool = False,
    windows: tuple[str, ...] = (),
) -> Compiled:
    """The same, without a look at what was compiled before."""
    build = Build(operated, known, _moment(now), steady=steady, windows=windows)
    main = formed(planned(query, known), Context(build, query.dataset))
    named = definitions(build)
    read = readings((main, *named.values()), single=known.single)
    if dialect == "duckdb":
        return Compiled(query.form, query.projection, to_sql(with_definitions(main, named), dialect), readings=read)
    steps, rest = _stepped(build, named)
    return Compiled(query.form, query.projection, to_sql(with_definitions(main, rest), dialect), steps, read)


def _moment(now: datetime) -> Value:
    lexical = now.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return Known(static(literal(lexical, XSD + "dateTime")))


def _stepped(build: Build, found: dict[str, exp.Query]) -> tuple[tuple[Step, ...], dict[str, exp.Query]]:
    """For an engine without recursion over sets: closures, and what they read, are made beforehand."""
    names = [*found]
    closures = [name for name, each in build.shared.items() if isinstance(each, Closure)]
    early = names[: names.index(closures[-1]) + 1] if closures else []
    steps = []
    for name in early:
        definition = build.shared[name]
        if isinstance(definition, Closure):
            known = f"{name}_known"
            parts = to_sql(definition.first(), "spark"), to_sql(definition.next(known), "spark")
            steps.append(Step(name, parts[0], known, parts[1]))
        else:
            steps.append(Step(name, to_sql(found[name], "spark")))
    return tuple(steps), {name: each for name, each in found.items() if name not in early}
