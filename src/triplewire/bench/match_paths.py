"""The workload `paths`: an event is a chain of five quads, a subscription a path of five patterns from one constant to
another. All are of one shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

from triplewire.bench.match_draws import below, draw
from triplewire.bench.match_templates import Question, Template

BASE = "http://bench.example/"
BROKEN = 5
"""One of so many events has both ends, but its chain is broken in the middle."""

_SUBSCRIPTIONS, _EVENTS = 11, 12

_PATH = Template(
    f"SELECT * {{ $i0 <{BASE}first> ?a . ?a <{BASE}second> ?b . ?b <{BASE}third> ?c . ?c <{BASE}fourth> ?d . "
    f"?d <{BASE}fifth> $i1 }}"
)


@dataclass(frozen=True)
class Paths:
    """Both ends are drawn from pools whose product says how seldom a path meets a chain."""

    starts: int
    ends: int

    @classmethod
    def of(cls, subscriptions: int, matches: float) -> Paths:
        pairs = subscriptions / matches * (BROKEN - 1) / BROKEN
        starts = max(1, isqrt(round(pairs)))
        return cls(starts, max(1, round(pairs / starts)))

    @property
    def templates(self) -> Sequence[Template]:
        return (_PATH,)

    def question(self, number: int) -> Question:
        start, left = below(draw(_SUBSCRIPTIONS, number), self.starts)
        end, _ = below(left, self.ends)
        return Question(_PATH, (_start(start), _end(end)))

    def event(self, number: int) -> tuple[str, str]:
        start, left = below(draw(_EVENTS, number), self.starts)
        end, left = below(left, self.ends)
        broken, left = below(left, BROKEN)
        turn, _ = below(left, 5)
        node = f"<{BASE}n/{number}/"
        gap = f"{node}x>" if broken == 0 else f"{node}3>"
        lines = [
            f"{_start(start)}\t<{BASE}first>\t{node}1>",
            f"{node}1>\t<{BASE}second>\t{node}2>",
            f"{node}2>\t<{BASE}third>\t{node}3>",
            f"{gap}\t<{BASE}fourth>\t{node}4>",
            f"{node}4>\t<{BASE}fifth>\t{_end(end)}",
        ]
        return "bench", "\n".join(lines[turn:] + lines[:turn])


def _start(number: int) -> str:
    return f"<{BASE}start/{number}>"


def _end(number: int) -> str:
    return f"<{BASE}end/{number}>"
