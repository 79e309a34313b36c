"""Tokens as registry entries, and the ring of them that a process looks into at every request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triplewire.access.tokens import Token
from triplewire.model import START
from triplewire.registry.ports import Change, Registry

TOKEN = "token"


def to_value(token: Token) -> Mapping[str, Any]:
    """What is stored under (`token`, id): a digest, never the secret."""
    value = {
        "name": token.name,
        "digest": token.digest.hex(),
        "allows": list(token.allows),
        "roles": list(token.roles),
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
    }
    return {name: each for name, each in value.items() if each is not None}


def from_change(change: Change) -> Token:
    """The token that a change set. A removal sets none: raises ValueError."""
    if change.value is None:
        raise ValueError(f"{change.kind} {change.key} was removed at {change.position}")
    value = change.value
    return Token(
        id=change.key,
        name=value["name"],
        digest=bytes.fromhex(value["digest"]),
        allows=tuple(value["allows"]),
        roles=tuple(value["roles"]),
        created=value["created"],
        expires=value.get("expires"),
        revoked=value.get("revoked"),
    )


def tokens(registry: Registry) -> Sequence[Token]:
    """All of them, the one that was changed last at the end."""
    return [from_change(change) for change in registry.list(TOKEN)]


class Ring:
    """The tokens as they are at this moment, whichever process changed them. For one thread.

    A look costs what `changed` costs, and a query only where something did change. Tokens that were cleared away are
    still in it: they are good for nothing.
    """

    def __init__(self, registry: Registry, changed: Callable[[], bool]) -> None:
        """`changed` tells whether the registry was written to since it was last asked."""
        self._registry = registry
        self._changed = changed
        self._stale = True
        self._upto: int = START
        self._tokens: dict[str, Token] = {}

    def newest(self) -> int:
        """Look; another number than before where any token was made or revoked, and 0 where none ever was. Raises
        Unavailable, and then looks again next time."""
        self._stale = self._changed() or self._stale
        if self._stale:
            for change in self._registry.list(TOKEN, after=self._upto):
                self._tokens[change.key] = from_change(change)
                self._upto = max(self._upto, change.position)
            self._stale = False
        return self._upto

    def find(self, id: str) -> Token | None:
        """As of the last look."""
        return self._tokens.get(id)
