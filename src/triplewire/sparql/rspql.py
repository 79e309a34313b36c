"""RSP-QL: the text of a continuous query, with or without windows, parsed and compiled."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from triplewire.model.subscriptions import ReportStrategy
from triplewire.sparql.algebra import Query
from triplewire.sparql.dialects.generators import Dialect
from triplewire.sparql.queries import CompiledQuery, compile_query
from triplewire.sparql.statistics import Statistics
from triplewire.sparql.syntax.cursor import Cursor, WindowClause, WindowDeclarations
from triplewire.sparql.syntax.lexer import SourceSpan
from triplewire.sparql.syntax.queries import REMEMBERED_QUERY_CHARACTERS, check_length, finish_query, start_parsing
from triplewire.sparql.syntax.windows import parse_stream_name

__all__ = ["Registration", "WindowClause", "compile_windows", "parse_registration"]

_REPORTS = tuple(each.value.upper() for each in ReportStrategy)
_WINDOWED = "`FROM NAMED WINDOW <w> ON <stream> [RANGE PT10M]` in a query that begins with REGISTER, or none of both"


@dataclass(frozen=True)
class Registration:
    """A continuous query with its windows, in the order in which they are declared. Without any it is plain SPARQL and
    has no report strategy; `name` is that of the stream of answers, if the text has one."""

    query: Query
    windows: tuple[WindowClause, ...] = ()
    name: str | None = None
    report: ReportStrategy | None = None
    spans: tuple[SourceSpan, ...] = field(default=(), compare=False, repr=False)
    """The positions of its constructs, for refusals after parsing."""


def parse_registration(text: str) -> Registration:
    """Parse a continuous query and its windows.

    Raises SparqlSyntax for text that is neither SPARQL nor RSP-QL, Unsupported for a construct that is not supported,
    both with the position, and BodyTooLarge over the limit.
    """
    if len(text) <= REMEMBERED_QUERY_CHARACTERS:
        return _parse_cached(text)
    check_length(text)
    return _parse(text)


@lru_cache(maxsize=512)
def _parse_cached(text: str) -> Registration:
    return _parse(text)


def _parse(text: str) -> Registration:
    windows = WindowDeclarations()
    cursor = start_parsing(text, None, windows)
    start = cursor.token
    report, name = _head(cursor) if cursor.accept("REGISTER") else (None, None)
    form = cursor.token
    query = finish_query(cursor)
    found = _declared_windows(cursor, windows)
    if not found and report is not None:
        raise cursor.syntax_error(_WINDOWED, start)
    if found and query.form not in ("select", "construct"):
        raise cursor.unsupported(f"{form.key} over windows", form, hint="SELECT and CONSTRUCT make streams of answers")
    return Registration(query, found, name, report or (ReportStrategy.ALL if found else None), cursor.spans)


def _head(cursor: Cursor) -> tuple[ReportStrategy, str]:
    """Parse what follows REGISTER: the report strategy and the name of the answers' stream."""
    report = ReportStrategy(cursor.expect(*_REPORTS).key.lower())
    name = parse_stream_name(cursor)
    cursor.expect("AS")
    return report, name


def _declared_windows(cursor: Cursor, windows: WindowDeclarations) -> tuple[WindowClause, ...]:
    for name, (token, _) in windows.declared.items():
        if name not in windows.used:
            raise cursor.syntax_error(f"a window that is used, as in `WINDOW {token.text} {{ ... }}`", token)
    return tuple(clause for _, clause in windows.declared.values())


def compile_windows(
    registration: Registration,
    dialect: Dialect,
    statistics: Statistics | None = None,
    now: datetime | None = None,
    *,
    steady: bool = False,
) -> CompiledQuery:
    """Compile the query over the relations `window_0`, `window_1`, …, which have the columns of `quads` and hold the
    windows' content, in the order of `registration.windows`; patterns outside of windows read `quads` and `events`.

    `statistics` describe the latter alone. `now` is the result of NOW(): a query that uses it is compiled for each
    time.
    """
    names = tuple(each.name for each in registration.windows)
    return compile_query(registration.query, dialect, statistics, now, steady=steady, windows=names)
