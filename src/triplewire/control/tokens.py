"""Tokens: making, seeing and revoking them. Pure over the registry port; it blocks, so call it from a thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triplewire.access.lifetimes import lifetime
from triplewire.access.principals import Principal
from triplewire.access.tokens import Token, digest, new_id, new_secret, written
from triplewire.config import limits
from triplewire.model.clock import Clock
from triplewire.model.errors import Conflict, InvalidField, NotFound
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import TOKEN, read_tokens, token_from_change, token_to_value

_FIELDS = ("name", "allow", "roles", "expires")


@dataclass(frozen=True)
class Order:
    """A token that somebody wants: what for, what it allows (`publish:home`), its roles, and how long it is good."""

    name: str
    allow: tuple[str, ...]
    roles: tuple[str, ...] = ()
    expires: str | None = None
    """A lifetime such as `30d`; None is for good."""

    @classmethod
    def from_json(cls, value: object) -> Order:
        """From the body of a request. Raises Unfit, and says which field does not fit."""
        if not isinstance(value, dict):
            raise InvalidField("", "the body must be a JSON object")
        unknown = sorted(set(value) - set(_FIELDS))
        if unknown:
            raise InvalidField(unknown[0], f"{unknown[0]!r} is not known here; {', '.join(_FIELDS)} are")
        expires = value.get("expires")
        if not isinstance(expires, str | None):
            raise InvalidField("expires", "expires must be a lifetime such as 30d")
        return cls(_text(value.get("name")), _texts(value, "allow"), _texts(value, "roles"), expires)


class Tokens:
    """Those that there are, as the registry holds them."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def create(self, order: Order) -> tuple[Token, str]:
        """The token, and the text of it, which nobody can tell afterwards. Raises Unfit or BadRequest for an order that
        makes no sense, Conflict where there are too many."""
        _check(order)
        now = self._clock.now()
        expires = None if order.expires is None else now + lifetime(order.expires)
        id, secret = new_id(), new_secret()
        made = Token(id, order.name, digest(secret), order.allow, order.roles, now, expires)
        self._registry.put(
            [*((TOKEN, each, None) for each in self._in_the_way(now)), (TOKEN, id, token_to_value(made))]
        )
        return made, written(id, secret)

    def all(self) -> Sequence[Token]:
        """In the order in which they were made."""
        return sorted(read_tokens(self._registry), key=lambda each: each.created)

    def now(self) -> int:
        """By which it is told whether a token is good."""
        return self._clock.now()

    def find(self, id: str) -> Token:
        """Raises NotFound."""
        change = self._registry.get(TOKEN, id)
        if change is None:
            raise NotFound(f"there is no token {id}")
        return token_from_change(change)

    def revoke(self, id: str) -> Token:
        """From now on it is good for nothing, and who came in by it is sent away. It stays in the list. Raises
        NotFound."""
        found = self.find(id)
        if found.revoked is not None:
            return found
        gone = replace(found, revoked=self._clock.now())
        self._registry.put([(TOKEN, id, token_to_value(gone))])
        return gone

    def _in_the_way(self, now: int) -> list[str]:
        """Where there are as many as may be, those that are good for nothing."""
        found = read_tokens(self._registry)
        if len(found) < limits.TOKENS:
            return []
        gone = [each.id for each in found if each.state(now) != "good"]
        if not gone:
            raise Conflict(f"there are {limits.TOKENS} tokens, which is the most; revoke some")
        return gone


def _check(order: Order) -> None:
    if not order.allow:
        raise InvalidField("allow", "allow must say what the token lets do: publish:home, consume:city-*, query, admin")
    if len(order.allow) + len(order.roles) > limits.TOKEN_GRANTS:
        raise InvalidField("allow", f"a token has at most {limits.TOKEN_GRANTS} grants and roles")
    for field, texts in (("name", (order.name,)), ("allow", order.allow), ("roles", order.roles)):
        for text in texts:
            _check_text(field, text)
    Principal.granted("", order.allow)


def _check_text(field: str, text: str) -> None:
    if not text or not text.isprintable() or len(text) > limits.TOKEN_CHARACTERS:
        raise InvalidField(
            field, f"{field} must be printable text of at most {limits.TOKEN_CHARACTERS} characters, not {text!r}"
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidField("name", "name must say what the token is for")
    return value


def _texts(value: dict[str, object], field: str) -> tuple[str, ...]:
    found = value.get(field, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidField(field, f"{field} must be a list of texts")
    return tuple(found)
