"""Subscriptions survive the registry unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplewire.model import END, Kind, Subscription
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import (
    SUBSCRIPTION,
    end_subscription,
    subscription_from_change,
    subscription_to_value,
)
from triplewire.testing import open_twin

subscriptions = st.builds(
    Subscription,
    id=st.text(min_size=1),
    sparql=st.text(),
    kind=st.sampled_from(Kind),
    shape=st.text(),
    constants=st.lists(st.text()).map(tuple),
    stream=st.none() | st.text(),
    created=st.integers(0, END),
)


@given(subscriptions)
def test_what_is_put_comes_back_with_the_position_at_which_it_was_made(subscription: Subscription) -> None:
    with open_twin("memory") as stores:
        (position,) = stores.registry.put([(SUBSCRIPTION, subscription.id, subscription_to_value(subscription))])
        (change,) = stores.registry.list(SUBSCRIPTION)
    found = subscription_from_change(change)
    assert (found.since, found.until) == (position, END)
    assert subscription_to_value(found) == subscription_to_value(subscription)
    assert found.id == subscription.id


def test_a_removal_makes_no_subscription() -> None:
    with pytest.raises(ValueError, match="subscription s was removed at 7"):
        subscription_from_change(RegistryChange(7, SUBSCRIPTION, "s", None))


def test_an_ended_subscription_differs_in_its_end_alone() -> None:
    subscription = Subscription("s", "ASK {}", Kind.SIGNAL, "shape", ())
    assert end_subscription(subscription, 9).until == 9
    assert end_subscription(end_subscription(subscription, 9), END) == subscription
