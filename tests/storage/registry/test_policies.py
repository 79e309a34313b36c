"""The policy in force, and those before it, in every twin of the registry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from triplewire.model.errors import BadRequest, NotFound
from triplewire.storage.registry.security import NO_POLICY, PolicyStore
from triplewire.testing import TWIN_KINDS, Twin, open_twin

OPEN = '[default]\nsee = "allow"\npublish = "allow"\n'
SHUT = '[default]\nsee = "deny"\npublish = "deny"\n'


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


def test_before_the_first_there_is_none(stores: Twin) -> None:
    policies = PolicyStore(stores.registry)
    assert policies.current() == policies.at(5) == NO_POLICY
    assert list(policies.versions()) == []
    with pytest.raises(NotFound):
        policies.remove()


def test_each_holds_from_its_position_on(stores: Twin) -> None:
    policies, other = PolicyStore(stores.registry), PolicyStore(stores.registry)
    stores.registry.put([("ontology", "a", {})])
    first = policies.load(OPEN)
    stores.registry.put([("ontology", "b", {})])
    second = other.load(SHUT)
    gone = policies.remove()
    third = other.load(OPEN)
    assert [first.version, second.version, gone.version, third.version] == [2, 4, 5, 6]
    texts = [policies.at(position).text for position in range(8)]
    assert texts == [None, None, OPEN, OPEN, SHUT, None, OPEN, OPEN]
    assert [each.version for each in policies.versions()] == [6, 5, 4, 2]
    assert policies.version(4).text == SHUT
    assert policies.version(5).policy is None
    for position in (0, 1, 3, 7):
        with pytest.raises(NotFound):
            policies.version(position)


def test_a_version_is_read_once(stores: Twin) -> None:
    policies = PolicyStore(stores.registry)
    policies.load(OPEN)
    assert policies.current() is policies.current()


def test_one_that_is_wrong_leaves_what_is_in_force(stores: Twin) -> None:
    policies = PolicyStore(stores.registry)
    policies.load(OPEN)
    with pytest.raises(BadRequest):
        policies.load("[default]")
    assert policies.current().text == OPEN
