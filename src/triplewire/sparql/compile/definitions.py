"""Definitions: the named relations that a query reads, in front of it."""

from __future__ import annotations

from sqlglot import exp

from triplewire.sparql.compile.closures import Closure
from triplewire.sparql.compile.contexts import Build, Definition


def defined(build: Build, query: exp.Query) -> exp.Query:
    """The query with the named relations that it reads, for an engine that has recursion over sets."""
    return with_definitions(query, definitions(build))


def definitions(build: Build) -> dict[str, exp.Query]:
    """Made from the last to the first, because each asks those before it for columns."""
    made = {name: _defined(name, each) for name, each in reversed([*build.shared.items()])}
    return dict(reversed([*made.items()]))


def _defined(name: str, definition: Definition) -> exp.Query:
    return definition.recursive(name) if isinstance(definition, Closure) else definition.sql()


def with_definitions(query: exp.Query, relations: dict[str, exp.Query]) -> exp.Query:
    if not relations:
        return query
    named = [exp.CTE(this=each, alias=exp.TableAlias(this=exp.to_identifier(name))) for name, each in relations.items()]
    query.set("with_", exp.With(expressions=named, recursive=True))
    return query
