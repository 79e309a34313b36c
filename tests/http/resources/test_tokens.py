"""Making, seeing and revoking tokens: over every twin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from triplewire.http.resources.access_control import TokenManager, TokenRequest, token_document
from triplewire.model.errors import BadRequest, Conflict, InputError, InvalidField, NotFound
from triplewire.security.tokens import matches_secret, parse_access_token
from triplewire.storage.registry.security import TOKEN
from triplewire.testing import TWIN_KINDS, Twin, open_twin

ORDER = TokenRequest("ci", ("publish:home", "consume:city-*"), ("guest",), "30d")


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        yield made


@pytest.fixture
def tokens(stores: Twin) -> TokenManager:
    return TokenManager(stores.registry, stores.clock)


def test_a_token_is_made_with_what_was_asked_for(tokens: TokenManager, stores: Twin) -> None:
    made, text = tokens.create(ORDER)
    id, secret = parse_access_token(text) or ("", "")
    assert id == made.id
    assert matches_secret(tokens.find(id), secret)
    told = token_document(made, stores.clock.now()).to_json()
    assert told["allow"] == ["publish:home", "consume:city-*"]
    assert told["roles"] == ["guest"]
    assert (told["state"], told["revoked"]) == ("good", None)
    assert made.expires == stores.clock.now() + 30 * 86_400_000_000


def test_the_secret_is_stored_nowhere(tokens: TokenManager, stores: Twin) -> None:
    made, text = tokens.create(ORDER)
    _, secret = parse_access_token(text) or ("", "")
    kept = orjson.dumps([change.value for change in stores.registry.changes(0, 10)]).decode()
    assert made.digest.hex() in kept
    assert secret not in kept
    assert secret not in orjson.dumps(token_document(made, 0)).decode()
    assert made.digest.hex() not in orjson.dumps(token_document(made, 0)).decode()


def test_a_token_without_an_end_is_good_for_good(tokens: TokenManager, stores: Twin) -> None:
    made, _ = tokens.create(TokenRequest("ci", ("*",)))
    stores.clock.advance(1e9)
    assert tokens.find(made.id).state(stores.clock.now()) == "good"


def test_one_that_is_revoked_stays_in_the_list(tokens: TokenManager, stores: Twin) -> None:
    first, _ = tokens.create(ORDER)
    stores.clock.advance(1)
    second, _ = tokens.create(ORDER)
    gone = tokens.revoke(first.id)
    assert gone.revoked == stores.clock.now()
    assert [each.id for each in tokens.all()] == [first.id, second.id]
    assert [each.state(stores.clock.now()) for each in tokens.all()] == ["revoked", "good"]


def test_who_revokes_twice_changes_nothing(tokens: TokenManager, stores: Twin) -> None:
    made, _ = tokens.create(ORDER)
    once = tokens.revoke(made.id)
    stores.clock.advance(1)
    assert tokens.revoke(made.id) == once


def test_one_that_is_not_there_cannot_be_revoked(tokens: TokenManager) -> None:
    with pytest.raises(NotFound):
        tokens.revoke("nothing")


def test_those_that_are_good_for_nothing_make_room(stores: Twin) -> None:
    tokens = TokenManager(stores.registry, stores.clock, most=3)
    first, second, third = (tokens.create(ORDER)[0] for _ in range(3))
    with pytest.raises(Conflict, match="3 tokens"):
        tokens.create(ORDER)
    tokens.revoke(second.id)
    fourth, _ = tokens.create(ORDER)
    assert {each.id for each in tokens.all()} == {first.id, third.id, fourth.id}
    assert stores.registry.get(TOKEN, second.id) is None


@pytest.mark.parametrize(
    ("order", "field"),
    [
        (TokenRequest("", ("query",)), "name"),
        (TokenRequest("a\nb", ("query",)), "name"),
        (TokenRequest("ci", ()), "allow"),
        (TokenRequest("ci", ("query",) * 65), "allow"),
        (TokenRequest("ci", ("query",), ("",)), "roles"),
        (TokenRequest("ci", ("publish:" + "a" * 256,)), "allow"),
    ],
)
def test_what_does_not_fit_is_named(tokens: TokenManager, order: TokenRequest, field: str) -> None:
    with pytest.raises(InvalidField) as caught:
        tokens.create(order)
    assert caught.value.field == field


@pytest.mark.parametrize("order", [TokenRequest("ci", ("fly:home",)), TokenRequest("ci", ("query",), expires="soon")])
def test_what_makes_no_sense_is_refused(tokens: TokenManager, order: TokenRequest) -> None:
    with pytest.raises(BadRequest):
        tokens.create(order)
    assert tokens.all() == []


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"name": 1, "allow": ["query"]},
        {"name": "ci", "allow": "query"},
        {"name": "ci", "allow": [1]},
        {"name": "ci", "allow": ["query"], "expires": 30},
        {"name": "ci", "allow": ["query"], "secret": "mine"},
    ],
)
def test_a_body_that_orders_nothing_is_refused(value: Any) -> None:  # noqa: ANN401 - any JSON
    with pytest.raises(InputError):
        TokenRequest.from_json(value)


def test_an_order_is_read_from_json() -> None:
    told = {"name": "ci", "allow": ["publish:home", "consume:city-*"], "roles": ["guest"], "expires": "30d"}
    assert TokenRequest.from_json(told) == ORDER
