"""Query compilation: a whole query as SQL for one engine, through a cache of SQL templates.

Constants that do not shape the plan are lifted out. Queries that differ only in them share one template: it is compiled
once, with stand-ins that resemble the constants in all that the compiler looks at and that no query contains; each
occurrence of a stand-in in the SQL is a slot to be filled.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from triplewire.model.terms import XSD, literal, parse_literal
from triplewire.sparql.algebra import Apply, Const, Expression, Family, Node, Query, Var
from triplewire.sparql.compiler.contexts import Context, PathClosure, QueryBuild, render_definitions, with_definitions
from triplewire.sparql.compiler.index_joins import IndexJoin, find_index_join
from triplewire.sparql.compiler.modifiers import compile_form
from triplewire.sparql.compiler.operators import compile_operator
from triplewire.sparql.compiler.scan_analysis import find_scan_predicates
from triplewire.sparql.compiler.scan_predicates import ScanPredicate
from triplewire.sparql.compiler.terms import ConstantValue
from triplewire.sparql.compiler.values import Value
from triplewire.sparql.constants import as_float, parse_constant
from triplewire.sparql.dialects.generators import Dialect, to_sql
from triplewire.sparql.optimizer import optimize_query
from triplewire.sparql.parameters import ConstantLifter
from triplewire.sparql.statistics import Statistics
from triplewire.sparql.syntax.cursor import QUERY_NESTING
from triplewire.sparql.syntax.queries import REMEMBERED_QUERY_CHARACTERS

_COMPARISONS = frozenset({"=", "!=", "<", "<=", ">", ">="})
_LARGEST_EXACT = 16_000_000
"""The largest whole number that is lifted: up to here numbers are exact as floats, so that the plan does not depend on
which it is."""

_MOST_SLOTS = 100
"""The most constants that are lifted: stand-ins for numbers differ in two digits."""

_STAND_IN_CORES = ("urn:x-slot:", "73009", "2999-12-31")
"""Texts that mark stand-ins. A query that holds one of them itself is not lifted."""

_LONGEST = 4 * REMEMBERED_QUERY_CHARACTERS
"""The longest `repr` of a query that is cached as a template: it is some four times as long as the text."""

_NOW = repr(Apply("now", ()))
_NUMBER = re.compile(r"(0|[1-9][0-9]{0,7})(\.[0-9]*[1-9])?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True)
class LiftedQuery:
    """A query with stand-ins, and, for each form in which the compiler writes one, the text to fill in."""

    structure: Query
    fillings: dict[str, str]


@dataclass(frozen=True)
class SqlTemplate:
    """SQL in pieces: every second one is a slot, named by the stand-in's form."""

    pieces: tuple[str, ...]

    def fill(self, fillings: dict[str, str]) -> str:
        filled = list(self.pieces)
        filled[1::2] = [f"'{fillings[name]}'" for name in self.pieces[1::2]]
        return "".join(filled)


def lift_constants(query: Query) -> LiftedQuery | None:
    """Lift the constants that cannot affect the plan. Return None for a query that is not to be cached: one that is too
    long, or that asks for the time."""
    written = repr(query)
    if len(written) > _LONGEST or _NOW in written:
        return None
    if any(core in written for core in _STAND_IN_CORES):
        return LiftedQuery(query, {})
    lifter = _StandInLifter()
    return LiftedQuery(lifter.query(query), lifter.fillings)


def make_template(sql: str, slots: Collection[str]) -> SqlTemplate | None:
    """Find the slots in SQL that was compiled with stand-ins; None if a stand-in occurs in an unknown form."""
    pieces, end = [""], 0
    for found in _LITERAL.finditer(sql):
        pieces[-1] += sql[end : found.start()]
        end = found.end()
        if found[1] in slots:
            pieces += [found[1], ""]
        else:
            pieces[-1] += found[0]
    pieces[-1] += sql[end:]
    if any(core in piece for piece in pieces[::2] for core in _STAND_IN_CORES):
        return None
    return SqlTemplate(tuple(pieces))


@dataclass
class _StandInLifter(ConstantLifter):
    """Puts a stand-in of its own in place of each constant that does not shape the plan."""

    fillings: dict[str, str] = field(default_factory=dict)

    def node(self, node: Node) -> Node:
        return self.lift(node) if isinstance(node, Const) and node.term.startswith("<") else node

    def expression(self, expression: Expression) -> Expression:
        """Lift only constants that are compared with a variable."""
        match expression:
            case Apply(op, (Var() as left, Const() as right)) if op in _COMPARISONS:
                return Apply(op, (left, self.lift(right)))
            case Apply("&&" | "||" | "!", args):
                return replace(expression, args=tuple(self.expression(each) for each in args))
        return expression

    def lift(self, constant: Const, family: Family | None = None) -> Node:
        forms = _forms(constant.term)
        if forms is None or len(self.constants) >= _MOST_SLOTS or set("'\\") & set(constant.term):
            return constant
        stand_in = _stand_in(constant.term, len(self.constants))
        slots = _forms(stand_in)
        if slots is None:
            return constant
        self.constants.append(constant.term)
        self.fillings |= zip(slots, forms, strict=True)
        return Const(stand_in)


def _forms(term: str) -> tuple[str, ...] | None:
    """Return the forms in which the compiler writes a constant: as a term, and as its value. None if it may affect the
    plan."""
    if term.startswith("<"):
        return (term,)
    parts = parse_literal(term)
    if parts.datatype == XSD + "integer" or parts.datatype == XSD + "decimal":
        return _number_forms(term, parts.lexical)
    time = parse_constant(term).time
    if parts.datatype == XSD + "dateTime" and time is not None and _TIME.fullmatch(parts.lexical):
        return term, parts.lexical, time.isoformat(" ")
    return None


def _number_forms(term: str, lexical: str) -> tuple[str, ...] | None:
    found = _NUMBER.fullmatch(lexical)
    value = float(lexical) if found else 0.0
    if found is None or value > _LARGEST_EXACT or as_float(value) != value:
        return None
    return term, lexical, f"{found[1]}.0"


def _stand_in(term: str, number: int) -> str:
    """Return another constant of the same kind. The fraction of a number stays: it is written by itself."""
    if term.startswith("<"):
        return f"<urn:x-slot:{number}>"
    parts = parse_literal(term)
    if parts.datatype == XSD + "dateTime":
        return literal(f"2999-12-31T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z", parts.datatype)
    _, point, fraction = parts.lexical.partition(".")
    return literal(f"{7_300_900 + number}{point}{fraction}", parts.datatype)


NO_STATISTICS = Statistics()
"""Statistics of data of which nothing is known."""


@dataclass(frozen=True)
class PreparationStep:
    """A relation to be created, under its name, before the query runs. With `following` it is a closure: that query
    extends the pairs in the relation `known` by one step, and is repeated until there are no new ones."""

    name: str
    sql: str
    known: str = ""
    following: str = ""


@dataclass(frozen=True)
class CompiledQuery:
    """A query as an engine runs it: the steps in order, then the SQL.

    A SELECT has one column `v0`, `v1`, … for each variable of the projection, or the column `unit`; an ASK one boolean
    column `answer`; a CONSTRUCT or DESCRIBE the columns `subject`, `predicate` and `object`.
    """

    form: Literal["select", "ask", "construct", "describe"]
    projection: tuple[str, ...]
    sql: str
    steps: tuple[PreparationStep, ...] = ()
    scan_predicates: tuple[ScanPredicate, ...] = ()
    """The rows that each scan can use. A scan that is not listed can use any."""
    index_join: IndexJoin | None = None
    """The same query over indexes of `quads`, if they can answer it; for DuckDB alone."""


def compile_query(
    query: Query,
    dialect: Dialect,
    statistics: Statistics | None = None,
    now: datetime | None = None,
    *,
    steady: bool = False,
    windows: tuple[str, ...] = (),
) -> CompiledQuery:
    """Compile a query over the relations `quads` and `events`. `now` is the result of NOW().

    If `steady`, an answer is the same byte by byte whatever the plan: wherever SPARQL leaves an order open, texts are
    ordered. Patterns inside WINDOW read `window_0`, `window_1`, …, by the index of the window's name in `windows`.
    """
    known = statistics or NO_STATISTICS
    lifted = None if dialect == "spark" else lift_constants(query)
    if lifted is None:
        return compile_uncached(query, dialect, known, now or datetime.now(UTC), steady=steady, windows=windows)
    found, sql = _template(lifted.structure, known, frozenset(lifted.fillings), steady, windows)
    if sql is None:
        return compile_uncached(query, dialect, known, datetime.now(UTC), steady=steady, windows=windows)
    read = tuple(each.fill(lifted.fillings) for each in found.scan_predicates)
    join = found.index_join and found.index_join.fill(lifted.fillings)
    return replace(found, sql=sql.fill(lifted.fillings), scan_predicates=read, index_join=join)


@lru_cache(maxsize=512)
def _template(
    structure: Query, statistics: Statistics, slots: frozenset[str], steady: bool, windows: tuple[str, ...]
) -> tuple[CompiledQuery, SqlTemplate | None]:
    """Compile the template that queries of one structure share, for DuckDB."""
    compiled = compile_uncached(structure, "duckdb", statistics, datetime.now(UTC), steady=steady, windows=windows)
    return compiled, make_template(compiled.sql, slots)


def compile_uncached(
    query: Query,
    dialect: Dialect,
    known: Statistics,
    now: datetime,
    *,
    steady: bool = False,
    windows: tuple[str, ...] = (),
) -> CompiledQuery:
    """Compile without the cache of templates."""
    build = QueryBuild(compile_operator, known, _now_value(now), steady=steady, windows=windows)
    main = compile_form(optimize_query(query, known), Context(build, query.dataset))
    named = render_definitions(build)
    read = find_scan_predicates((main, *named.values()), single=known.single)
    if dialect == "duckdb":
        sql = to_sql(with_definitions(main, named), dialect)
        join = None if named else find_index_join(main, query.form)
        return CompiledQuery(query.form, query.projection, sql, scan_predicates=read, index_join=join)
    steps, rest = _preparation_steps(build, named)
    return CompiledQuery(query.form, query.projection, to_sql(with_definitions(main, rest), dialect), steps, read)


def _now_value(now: datetime) -> Value:
    lexical = now.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return ConstantValue(parse_constant(literal(lexical, XSD + "dateTime")))


def _preparation_steps(
    build: QueryBuild, found: dict[str, exp.Query]
) -> tuple[tuple[PreparationStep, ...], dict[str, exp.Query]]:
    """Split off closures, and the relations that they read, for an engine without recursion over sets."""
    names = [*found]
    closures = [name for name, each in build.shared.items() if isinstance(each, PathClosure)]
    early = names[: names.index(closures[-1]) + 1] if closures else []
    steps = []
    for name in early:
        definition = build.shared[name]
        if isinstance(definition, PathClosure):
            known = f"{name}_known"
            parts = to_sql(definition.first(), "spark"), to_sql(definition.next(known), "spark")
            steps.append(PreparationStep(name, parts[0], known, parts[1]))
        else:
            steps.append(PreparationStep(name, to_sql(found[name], "spark")))
    return tuple(steps), {name: each for name, each in found.items() if name not in early}


FRAMES_PER_LEVEL = 300
"""The most calls that one level of a query takes: it becomes a few levels of SQL, each of which is generated by some
tens of functions that call each other."""


def ensure_recursion_limit() -> None:
    """Raise the interpreter's recursion limit, if necessary, so that a query of the greatest allowed nesting can be
    compiled."""
    needed = QUERY_NESTING * FRAMES_PER_LEVEL
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
