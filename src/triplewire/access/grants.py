"""Grants: a verb, and the streams for which it is allowed.

Written as `publish:home` for one stream, `consume:city-*` for all whose names begin so, `query:*` or just `query`
for
all. `*` alone is everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.access.verbs import Verb
from triplewire.model.errors import BadRequest

ALL = "*"


@dataclass(frozen=True, order=True)
class Grant:
    """Lets do what the verb says, on the streams that the pattern covers."""

    verb: Verb
    pattern: str = ALL

    def covers(self, stream: str) -> bool:
        if self.pattern.endswith(ALL):
            return stream.startswith(self.pattern[:-1])
        return stream == self.pattern

    @classmethod
    def parsed(cls, text: str) -> frozenset[Grant]:
        """What a text grants. Raises BadRequest, and says how it is written."""
        if text == ALL:
            return frozenset(cls(verb) for verb in Verb)
        name, colon, pattern = text.partition(":")
        if name not in list(Verb) or (colon and not pattern) or ALL in pattern[:-1]:
            verbs = ", ".join(Verb)
            raise BadRequest(
                f"{text!r} grants nothing: write a verb ({verbs}) and a stream, such as publish:home, consume:city-* "
                "or query:*; * alone is everything"
            )
        if Verb(name) is Verb.ADMIN and pattern not in ("", ALL):
            raise BadRequest(f"{text!r}: admin is not for some streams alone; write admin")
        return frozenset({cls(Verb(name), pattern or ALL)})

    def __str__(self) -> str:
        return self.verb if self.pattern == ALL else f"{self.verb}:{self.pattern}"
