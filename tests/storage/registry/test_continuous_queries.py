"""Continuous queries come out of the registry as they were put in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from triplewire.model import END
from triplewire.model.subscriptions import ContinuousQuery, LatePolicy, Owner, QueryState, TimeDomain
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import QUERY, query_from_change, query_to_value
from triplewire.testing import TWIN_KINDS, open_twin

PLAIN = ContinuousQuery("q", "SELECT * { ?s ?p ?o }", group=7, variables=("s", "p", "o"), created=9)
WHOLE = ContinuousQuery(
    id="q",
    text="CONSTRUCT …",
    name="hot",
    group=2**62,
    distinct=True,
    into="alerts",
    streams=("home", "street"),
    within=600.0,
    span=1_000,
    begins=3,
    owner=Owner("anna", ("subscribe",), ("staff",)),
    created=9,
)
WINDOWED = ContinuousQuery("q", "REGISTER …", into="hot", time=TimeDomain.EVENT, lateness=5.0, late=LatePolicy.REVISE)


@pytest.mark.parametrize("kind", TWIN_KINDS)
@pytest.mark.parametrize("query", [PLAIN, WHOLE, WINDOWED])
def test_a_query_comes_back_as_it_was_registered(kind: str, query: ContinuousQuery) -> None:
    with open_twin(kind) as stores:
        (position,) = stores.registry.put([(QUERY, query.id, query_to_value(query))])
        found = stores.registry.get(QUERY, query.id)
        assert found is not None
        assert query_from_change(found) == replace(query, since=position, until=END)
        assert query_from_change(found).windowed == (query is WINDOWED)


def test_one_that_was_suspended_was_registered_where_it_was() -> None:
    value = {**query_to_value(replace(WHOLE, state=QueryState.SUSPENDED)), "first": 4}
    assert query_from_change(RegistryChange(9, QUERY, "q", value)) == replace(
        WHOLE, state=QueryState.SUSPENDED, since=4
    )


def test_a_removal_registers_none() -> None:
    with pytest.raises(ValueError, match="removed at 3"):
        query_from_change(RegistryChange(3, QUERY, "q", None))
