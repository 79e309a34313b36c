"""Courses: where a feed listens now. At home, or at another edge that it was sent to, after the same event.

Positions are those of one edge. Away, messages have the ids of events, which every edge understands: whatever the last
id is, it is right at home.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yarl import URL

_HOPS = 5
"""Redirections in a row before a feed goes home, and asks to stay."""
_ENDING = ("subscription", "query")
"""What is listened to that may end."""


@dataclass
class Course:
    """One feed's way. `after` counts until there is a last id."""

    home: URL
    parameters: tuple[tuple[str, str], ...] = ()
    after: str | None = None
    away: URL | None = None
    _hops: int = 0
    _stay: bool = False

    def url(self, last: str | None) -> URL:
        """What to ask for."""
        if self.away is not None:
            return self.away
        after = [("after", self.after)] if self.after is not None and last is None else []
        return self.home.extend_query([*self.parameters, *after, *([("stay", "1")] if self._stay else [])])

    def headers(self, last: str | None) -> Mapping[str, str]:
        """From where. The place to begin at another edge is in its address, until something was heard there."""
        known = last is not None and (self.away is None or ":" in last)
        return {"Last-Event-ID": last} if known and last else {}

    def go(self, location: str) -> None:
        """Sent elsewhere; back home if that goes on and on."""
        self._hops += 1
        if self._hops > _HOPS:
            self.back()
        else:
            self.away = (self.away or self.home).join(URL(location, encoded=True))

    def heard(self) -> None:
        """It is somewhere where it is told something."""
        self._hops = 0

    def over(self, end: Mapping[str, str]) -> bool:
        """A subscription, or a query, has ended, and is not asked for again; whether none is left."""
        ended = [(name, end[name]) for name in _ENDING if name in end]
        self.parameters = tuple(each for each in self.parameters if each not in ended)
        return not any(name in _ENDING for name, _ in self.parameters)

    def back(self) -> bool:
        """Go home, and stay there; whether it was away."""
        was = self.away is not None
        self.away, self._stay, self._hops = None, self._stay or was, 0
        return was
