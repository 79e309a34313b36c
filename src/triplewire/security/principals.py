"""Principals, and the grants that they hold.

A grant is a verb and a stream pattern: `publish:home` for one stream, `consume:city-*` for a name prefix, `query:*` or
just `query` for all streams; `*` alone grants everything. Mercure names streams by topic: `/streams/home` is one
stream, `…/streams/city-{id}` a prefix, `…/streams/{stream}` or `*` all; any other address names none. An
`Authenticator` maps a credential to a principal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from triplewire.model.errors import BadRequest, Forbidden
from triplewire.model.subscriptions import Owner
from triplewire.security.visibility import ALL, covers


class Verb(StrEnum):
    """One kind of thing that is done here. None of them includes another."""

    PUBLISH = "publish"
    """Send events to streams."""
    CONSUME = "consume"
    """Listen to streams, and read them."""
    SUBSCRIBE = "subscribe"
    """Make subscriptions, and be told of what they match."""
    QUERY = "query"
    """Ask SPARQL of history."""
    ADMIN = "admin"
    """Change what holds for all: ontologies, templates, tokens, policies; erase; see how the service is doing."""


ALL_STREAMS = ALL


@dataclass(frozen=True, order=True)
class Grant:
    """Lets do what the verb says, on the streams that the pattern covers."""

    verb: Verb
    pattern: str = ALL_STREAMS

    def covers(self, stream: str) -> bool:
        return covers(self.pattern, stream)

    @classmethod
    def parsed(cls, text: str) -> frozenset[Grant]:
        """Parse a grant. Raises BadRequest, with the syntax."""
        if text == ALL_STREAMS:
            return frozenset(cls(verb) for verb in Verb)
        name, colon, pattern = text.partition(":")
        if name not in list(Verb) or (colon and not pattern) or ALL_STREAMS in pattern[:-1]:
            verbs = ", ".join(Verb)
            raise BadRequest(
                f"{text!r} grants nothing: write a verb ({verbs}) and a stream, such as publish:home, consume:city-* "
                "or query:*; * alone is everything"
            )
        if Verb(name) is Verb.ADMIN and pattern not in ("", ALL_STREAMS):
            raise BadRequest(f"{text!r}: admin is not for some streams alone; write admin")
        return frozenset({cls(Verb(name), pattern or ALL_STREAMS)})

    def __str__(self) -> str:
        return self.verb if self.pattern == ALL_STREAMS else f"{self.verb}:{self.pattern}"


@dataclass(frozen=True)
class Principal:
    """Somebody who was let in, with what is granted to them and the roles that policies speak of."""

    name: str
    grants: frozenset[Grant] = frozenset()
    roles: frozenset[str] = frozenset()
    expires: float | None = field(default=None, compare=False)
    """When what they showed is no longer good, in seconds since 1970."""

    def may(self, verb: Verb, stream: str | None = None) -> bool:
        """Whether something is allowed: on a stream, or, without one, on any stream at all."""
        held = (grant for grant in self.grants if grant.verb is verb)
        return any(stream is None or grant.covers(stream) for grant in held)

    def require(self, verb: Verb, stream: str | None = None) -> None:
        """Raises Forbidden for what is not allowed."""
        if not self.may(verb, stream):
            wanted = Grant(verb, stream or ALL_STREAMS)
            raise Forbidden(f"{self.name} has no grant for {wanted}", scope=str(wanted))

    def patterns(self, verb: Verb) -> frozenset[str]:
        """The patterns of the streams on which something is allowed; `*` covers all others."""
        found = frozenset(grant.pattern for grant in self.grants if grant.verb is verb)
        return frozenset({ALL_STREAMS}) if ALL_STREAMS in found else found

    @classmethod
    def granted(cls, name: str, texts: Iterable[str], roles: Iterable[str] = ()) -> Principal:
        """Somebody with grants as they are written. Raises BadRequest."""
        grants = frozenset(grant for text in texts for grant in Grant.parsed(text))
        return cls(name, grants, frozenset(roles))


NOBODY = Principal("nobody")
"""The principal of unauthenticated clients where authentication is required."""

EVERYONE = Principal.granted("everyone", [ALL_STREAMS])
"""The principal of all clients where authentication is off."""


_TOPIC = re.compile(r"(?:https?://[^/?#]+)?/streams/(?P<name>[A-Za-z0-9._~-]*)(?P<any>\{[A-Za-z0-9_.]+\})?")


def stream_pattern_of(topic: str) -> str | None:
    """The pattern of the streams that a topic, or a selector of topics, names; None where it names none."""
    if topic == ALL_STREAMS:
        return ALL_STREAMS
    found = _TOPIC.fullmatch(topic)
    if found is None or not (found["name"] or found["any"]):
        return None
    return found["name"] + (ALL_STREAMS if found["any"] else "")


def owner_of(principal: Principal) -> Owner | None:
    """How it is kept who made a subscription; None for everyone."""
    if principal == EVERYONE:
        return None
    return Owner(principal.name, tuple(sorted(map(str, principal.grants))), tuple(sorted(principal.roles)))


def principal_of(owner: Owner | None) -> Principal:
    return EVERYONE if owner is None else Principal.granted(owner.name, owner.grants, owner.roles)


def may_see(principal: Principal, owner: Owner | None) -> bool:
    """Whether a subscription of an owner is there for somebody: for whom it belongs to, by their name, and for those
    who look after everything."""
    return principal.may(Verb.ADMIN) or owner is None or owner.name == principal.name


class Authenticator(Protocol):
    """Knows principals by their credentials."""

    async def known(self, credential: str) -> Principal | None:
        """The principal of a credential, or None if it is of another kind. Raises Unauthenticated for a credential of
        this kind that is not valid: expired, revoked, forged."""
        ...
