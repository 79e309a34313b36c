"""Principals: who asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from triplewire.access.grants import ALL, Grant
from triplewire.access.verbs import Verb
from triplewire.model.errors import Forbidden


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
            wanted = Grant(verb, stream or ALL)
            raise Forbidden(f"{self.name} has no grant for {wanted}", scope=str(wanted))

    def patterns(self, verb: Verb) -> frozenset[str]:
        """The patterns of the streams on which something is allowed; `*` covers all others."""
        found = frozenset(grant.pattern for grant in self.grants if grant.verb is verb)
        return frozenset({ALL}) if ALL in found else found

    @classmethod
    def granted(cls, name: str, texts: Iterable[str], roles: Iterable[str] = ()) -> Principal:
        """Somebody with grants as they are written. Raises BadRequest."""
        grants = frozenset(grant for text in texts for grant in Grant.parsed(text))
        return cls(name, grants, frozenset(roles))


NOBODY = Principal("nobody")
"""Who asks without being known, where the door is closed."""

EVERYONE = Principal.granted("everyone", [ALL])
"""Who asks where the door is open."""
