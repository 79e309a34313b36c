"""Policies, tokens and visibilities as registry entries.

One policy document is in force, and every version is kept: each is put at a position, holds for events from there
on,
and names the position of the version before. Of tokens only a digest is stored. A visibility is stored once, under a
name that is derived from its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

import orjson

from triplewire.model import START
from triplewire.model.cache import BoundedCache
from triplewire.model.errors import NotFound
from triplewire.security import Policy, parse_policy
from triplewire.security.tokens import AccessToken
from triplewire.security.visibility import Visibility
from triplewire.storage.registry.codec import EntryCodec
from triplewire.storage.registry.ports import Registry, RegistryChange

CACHED_VISIBILITIES: Final = 4_096
"""Visibilities of owners of subscriptions in the cache: a policy has some dozens of roles; at worst 100 MB."""


RegistryEntry = tuple[str, str, Mapping[str, Any] | None]

POLICY = "policy"
IN_FORCE = "in-force"
"""The one key of its kind."""


@dataclass(frozen=True)
class PolicyVersion:
    """A version of the policy, from a position on. Without a text there is no policy from there on: `policy` is None,
    and principals see everything that is granted to them."""

    version: int
    text: str | None = None
    policy: Policy | None = None
    before: int = 0
    """The version before; 0 for the first."""


NO_POLICY = PolicyVersion(0)
"""The state before the first policy."""


class PolicyListener(Protocol):
    """Resources that change with the policy."""

    def following(self, policy: Policy | None) -> Sequence[RegistryEntry]:
        """Entries to put with the policy, in one transaction."""

    def settle(self) -> int:
        """Update resources that were added while the policy was put; return the position from which on all follow
        it."""


@dataclass(frozen=True)
class PolicyListeners:
    """Several listeners as one."""

    each: Sequence[PolicyListener]

    def following(self, policy: Policy | None) -> list[RegistryEntry]:
        return [entry for one in self.each for entry in one.following(policy)]

    def settle(self) -> int:
        return max(one.settle() for one in self.each)


class PolicyStore:
    """Policies in the registry. Any thread may call it; it reads from the disk. A version is parsed once."""

    def __init__(self, registry: Registry, followers: PolicyListener | None = None) -> None:
        self._registry = registry
        self._followers = followers
        self._newest = NO_POLICY

    def current(self) -> PolicyVersion:
        """The policy in force."""
        newest = self._newest
        # Mostly there is nothing newer, and then nothing of it is read.
        for change in self._registry.list(POLICY, after=newest.version, limit=1):
            newest = self._newest = policy_from_change(change)
        return newest

    def at(self, position: int) -> PolicyVersion:
        """The policy for the event at a position."""
        return next((each for each in self.versions() if each.version <= position), NO_POLICY)

    def versions(self) -> Iterator[PolicyVersion]:
        """All versions, the newest first."""
        enacted = self.current()
        while enacted.version:
            yield enacted
            change = next(iter(self._registry.changes(enacted.before - 1, enacted.before)), None)
            enacted = NO_POLICY if change is None else policy_from_change(change)

    def version(self, position: int) -> PolicyVersion:
        """Raises NotFound for a position at which none was put."""
        found = next((each for each in self.versions() if each.version == position), None)
        if found is None:
            raise NotFound("there is no such version of the policy")
        return found

    def load(self, text: str) -> PolicyVersion:
        """Put a policy in force. Raises the errors of `parse_policy`; then nothing changes."""
        parse_policy(text)
        return self._put(text)

    def remove(self) -> PolicyVersion:
        """Remove the policy. Raises NotFound if there is none."""
        if self.current().text is None:
            raise NotFound("there is no policy in force")
        return self._put(None)

    def _put(self, text: str | None) -> PolicyVersion:
        value = {"text": text, "before": self.current().version}
        following = () if self._followers is None else self._followers.following(_parse_policy(text))
        position, *_ = self._registry.put([(POLICY, IN_FORCE, value), *following])
        if self._followers is not None:
            self._followers.settle()
        return policy_from_change(RegistryChange(position, POLICY, IN_FORCE, value))


def policy_from_change(change: RegistryChange) -> PolicyVersion:
    """The version that a change put."""
    assert change.value is not None, "a policy that goes is a version, too"
    text = change.value["text"]
    return PolicyVersion(change.position, text, _parse_policy(text), change.value["before"])


def _parse_policy(text: str | None) -> Policy | None:
    return None if text is None else parse_policy(text)


TOKEN = "token"


_TOKENS = EntryCodec(AccessToken, key="id")
token_to_value = _TOKENS.to_value
token_from_change = _TOKENS.from_change


def read_tokens(registry: Registry) -> Sequence[AccessToken]:
    """All tokens, by position of their last change."""
    return [token_from_change(change) for change in registry.list(TOKEN)]


class TokenCache:
    """All tokens as they are now, whichever process changed them. For one thread.

    A look costs what `changed` costs, and a query only where something did change. Tokens that were cleared away are
    still in it: they are good for nothing.
    """

    def __init__(self, registry: Registry, changed: Callable[[], bool]) -> None:
        """`changed` tells whether the registry was written to since it was last asked."""
        self._registry = registry
        self._changed = changed
        self._stale = True
        self._position: int = START
        self._tokens: dict[str, AccessToken] = {}

    def newest(self) -> int:
        """Refresh; return a number that changes whenever a token was made or revoked, and is 0 before the first. Raises
        Unavailable; then the next call refreshes."""
        self._stale = self._changed() or self._stale
        if self._stale:
            for change in self._registry.list(TOKEN, after=self._position):
                self._tokens[change.key] = token_from_change(change)
                self._position = max(self._position, change.position)
            self._stale = False
        return self._position

    def find(self, id: str) -> AccessToken | None:
        """The token as of the last refresh."""
        return self._tokens.get(id)


VISIBILITY = "visibility"


@lru_cache(maxsize=CACHED_VISIBILITIES)
def visibility_name(visibility: Visibility) -> str:
    """A name that equal visibilities share, in every process and at all times."""
    return hashlib.sha256(orjson.dumps(visibility.to_json(), option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]


class VisibilityStore:
    """Visibilities in the registry, by name. Any thread may call it; it may read from the disk."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: BoundedCache[str, Visibility] = BoundedCache(CACHED_VISIBILITIES)

    def find(self, name: str | None) -> Visibility | None:
        """The visibility of a name; None, which shows everything, for None. Raises NotFound."""
        if name is None:
            return None
        found = self._known.get(name)
        if found is None:
            change = self._registry.get(VISIBILITY, name)
            if change is None or change.value is None:
                raise NotFound(f"the visibility {name} is not in the registry")
            found = Visibility.from_json(change.value)
            self._known.put(name, found)
        return found

    def missing(self, visibility: Visibility) -> bool:
        """Whether the registry does not have it yet."""
        return self._registry.get(VISIBILITY, visibility_name(visibility)) is None
