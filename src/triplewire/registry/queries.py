"""Continuous queries as registry entries."""

from __future__ import annotations

from triplewire.model.queries import ContinuousQuery, Late, State, Time, to_value
from triplewire.registry.ports import Change
from triplewire.registry.subscriptions import owner_in

__all__ = ["QUERY", "from_change", "queries_into", "queries_of", "to_value"]

QUERY = "query"


def queries_of(name: str) -> str:
    """The kind of an entry beside each query of somebody, under its id, to find them by."""
    return f"query of {name}"


def queries_into(stream: str) -> str:
    """The kind of an entry beside each query that publishes into a stream, under its id. It says which streams that
    query reads."""
    return f"query into {stream}"


def from_change(change: Change) -> ContinuousQuery:
    """The query that a change registered. A removal registers none: raises ValueError.

    One that is set again, because it was suspended, was registered at `first`.
    """
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = dict(change.value)
    first = value.pop("first", change.position)
    streams = value.pop("streams", None)
    return ContinuousQuery(
        id=change.key,
        constants=tuple(value.pop("constants", ())),
        variables=tuple(value.pop("variables", ())),
        streams=None if streams is None else tuple(streams),
        time=Time(value.pop("time", Time.ARRIVAL)),
        late=Late(value.pop("late", Late.DROP)),
        state=State(value.pop("state", State.ON)),
        owner=owner_in(value.pop("owner", None)),
        since=first,
        **value,
    )
