"""Tokens in the registry, and the ring that every request looks into: over every twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from triplewire.model.clock import ManualClock
from triplewire.model.errors import Unavailable
from triplewire.security.tokens import AccessToken, hash_secret
from triplewire.storage.registry.security import TOKEN, TokenCache, read_tokens, token_from_change, token_to_value
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.sqlite import CommitWatch
from triplewire.testing import TWIN_KINDS, Twin, open_twin, publication

WHOLE = AccessToken("a", "ci", hash_secret("x"), ("publish:home", "query"), ("guest",), 1, 2, 3)


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


@pytest.mark.parametrize("token", [WHOLE, replace(WHOLE, expires=None, revoked=None, roles=())])
def test_a_token_is_read_as_it_was_put(stores: Twin, token: AccessToken) -> None:
    stores.registry.put([(TOKEN, token.id, token_to_value(token))])
    assert read_tokens(stores.registry) == [token]


def test_a_removal_is_no_token(stores: Twin) -> None:
    stores.registry.put([(TOKEN, "a", None)])
    (change,) = stores.registry.changes(0, 1)
    with pytest.raises(ValueError, match="removed"):
        token_from_change(change)


def test_a_ring_has_what_was_put_before_and_after(stores: Twin) -> None:
    stores.registry.put([(TOKEN, "a", token_to_value(WHOLE))])
    ring = TokenCache(stores.registry, lambda: True)
    first = ring.newest()
    assert first
    assert ring.find("a") == WHOLE
    stores.registry.put(
        [(TOKEN, "b", token_to_value(replace(WHOLE, id="b"))), (TOKEN, "a", token_to_value(replace(WHOLE, revoked=9)))]
    )
    assert ring.newest() > first
    assert ring.find("a") == replace(WHOLE, revoked=9)
    assert ring.find("b") is not None
    assert ring.find("c") is None


def test_a_ring_without_tokens_says_so_whatever_else_changes(stores: Twin) -> None:
    ring = TokenCache(stores.registry, lambda: True)
    stores.log.append([publication(1)])
    stores.registry.put([("ontology", "a", {})])
    assert ring.newest() == 0


def test_nothing_is_read_while_nothing_changed() -> None:
    reads: list[str] = []

    class Counting:
        def list(self, kind: str, **_: object) -> list[object]:
            reads.append(kind)
            return []

    changes = iter([True, False])
    ring = TokenCache(Counting(), lambda: next(changes))  # type: ignore[arg-type]
    assert (ring.newest(), ring.newest(), reads) == (0, 0, [TOKEN])


def test_a_look_that_failed_is_taken_again(stores: Twin) -> None:
    """A change is told once: who could not read it must not go on as if there were none."""
    changes = iter([True, False])
    failing = [True]

    class Shaky:
        def list(self, *given: object, **others: object) -> object:
            if failing.pop() if failing else False:
                raise Unavailable("not now")
            return stores.registry.list(*given, **others)  # type: ignore[arg-type]

    stores.registry.put([(TOKEN, "a", token_to_value(WHOLE))])
    ring = TokenCache(Shaky(), lambda: next(changes))  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        ring.newest()
    assert ring.newest() == 1
    assert ring.find("a") == WHOLE


def test_what_another_process_does_is_seen_at_the_next_look(tmp_path: Path) -> None:
    mine, other = (SqliteRegistry(tmp_path / "access.db", ManualClock()) for _ in range(2))
    watch = CommitWatch(tmp_path / "access.db")
    ring = TokenCache(mine, watch.changed)
    assert ring.newest() == 0
    other.put([(TOKEN, "a", token_to_value(WHOLE))])
    assert ring.newest() == 1
    other.put([(TOKEN, "a", token_to_value(replace(WHOLE, revoked=9)))])
    assert ring.newest() == 2
    found = ring.find("a")
    assert found is not None
    assert found.revoked == 9
    for each in (mine, other, watch):
        each.close()
