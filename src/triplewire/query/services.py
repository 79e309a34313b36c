"""Services: what other endpoints answer, fetched before a query is compiled and put in its place as VALUES."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from triplewire.config import limits
from triplewire.errors import QueryLimit, Unavailable, Unsupported
from triplewire.query.endpoints import post
from triplewire.query.requests import Bounds
from triplewire.query.solutions import solutions
from triplewire.sparql.algebra import Const, Query, Service, Values

NOTHING = Values((), ((),))
"""The one empty solution."""

T = TypeVar("T")


def resolve(query: Query, allowed: Collection[str], bounds: Bounds) -> Query:
    """The query with the answer of every SERVICE in its place.

    Raises Unsupported for an endpoint that is not allowed, and what `fetch` raises.
    """
    return _mapped(query, lambda service: fetch(_permitted(service, allowed), bounds))


def fetch(service: Service, bounds: Bounds) -> Values:
    """What the endpoint answers: all of the group, whatever the rest of the query would need of it.

    Raises Unavailable or QueryLimit, unless the query says SILENT.
    """
    try:
        return _asked(service, min(bounds.seconds, limits.SERVICE_SECONDS))
    except (Unavailable, QueryLimit):
        if service.silent:
            return NOTHING
        raise


def _permitted(service: Service, allowed: Collection[str]) -> Service:
    if not isinstance(service.endpoint, Const):
        raise Unsupported("SERVICE with a variable", hint="write the endpoint's address into the query")
    address = service.endpoint.term[1:-1]
    if address not in allowed:
        raise Unsupported(f"SERVICE <{address}>", hint="the setting `services` names the endpoints that may be asked")
    return service


def _asked(service: Service, seconds: float) -> Values:
    assert isinstance(service.endpoint, Const), "permitted services have an address"
    address = service.endpoint.term[1:-1]
    body = post(address, f"{service.prologue}\nSELECT * WHERE {service.text}", seconds)
    rows = solutions(body, service.names, f"SERVICE <{address}>")
    if len(rows) > limits.SERVICE_ROWS:
        raise QueryLimit(f"SERVICE <{address}> has more than {limits.SERVICE_ROWS} solutions; ask it for less")
    return Values(service.names, rows)


def _mapped(node: T, answer: Callable[[Service], Values]) -> T:
    """The tree with every SERVICE replaced, wherever it stands: in groups, in sub-queries, in EXISTS."""
    changed: dict[str, Any] = {}
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        new = _value(value, answer)
        if new is not value:
            changed[field.name] = new
    return replace(node, **changed) if changed else node  # type: ignore[type-var]


def _value(value: Any, answer: Callable[[Service], Values]) -> Any:  # noqa: ANN401
    if isinstance(value, Service):
        return answer(value)
    if isinstance(value, Values):
        return value
    if isinstance(value, tuple):
        new = tuple(_value(each, answer) for each in value)
        return new if any(a is not b for a, b in zip(value, new, strict=True)) else value
    return _mapped(value, answer) if is_dataclass(value) and not isinstance(value, type) else value
