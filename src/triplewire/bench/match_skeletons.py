"""Skeletons: kinds of events. All have a key, a value, a time, a label and one quad more, under predicates of their
own; what hangs on what differs.

```
0  o ─key▶ s     value, time, label and class on o
1  o ─key▶ s     value, time and class on o, label on s
2  o ─key▶ s     o ─link▶ m, value and time on m, label on s
3  o ─link▶ m ─key▶ s     value on o, time on m, label on s
4  o ─key▶ s     value on s, time, label and class on o
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triplewire.bench.match_draws import below, draw
from triplewire.model.terms import XSD

BASE = "http://bench.example/"
STREAMS = ("north", "south")
CLASSES = 20

_KEYS, _REST = 31, 32
_ARRANGEMENTS: Sequence[Mapping[str, str]] = (
    {"key": "o", "value": "o", "time": "o", "label": "o", "class": "o"},
    {"key": "o", "value": "o", "time": "o", "label": "s", "class": "o"},
    {"key": "o", "link": "o", "value": "m", "time": "m", "label": "s"},
    {"link": "o", "key": "m", "value": "o", "time": "m", "label": "s"},
    {"key": "o", "value": "s", "time": "o", "label": "o", "class": "o"},
)
_VARIABLES = {"key": "?s", "link": "?m", "value": "?v", "time": "?t", "label": "?l", "class": "?c"}
_HUNDRED = 100_000_000


@dataclass(frozen=True)
class Skeleton:
    """One kind of events."""

    number: int

    @property
    def hangs(self) -> Mapping[str, str]:
        """On which node each predicate hangs."""
        return _ARRANGEMENTS[self.number % len(_ARRANGEMENTS)]

    def predicate(self, role: str) -> str:
        return f"<{BASE}kind/{self.number}/{role}>"

    def patterns(self, *roles: str, **given: str) -> str:
        """Patterns that join the roles, the key and the link among them always; `given` are terms for some."""
        wanted = [role for role in self.hangs if role in roles or role in ("key", "link")]
        return " . ".join(self._pattern(role, given) for role in wanted)

    def pattern(self, role: str, **given: str) -> str:
        """One of them alone."""
        return self._pattern(role, given)

    def _pattern(self, role: str, given: Mapping[str, str]) -> str:
        subject = "?" + self.hangs[role]
        if subject == "?s":
            subject = given.get("key", "?s")
        return f"{subject} {self.predicate(role)} {given.get(role, _VARIABLES[role])}"


@dataclass(frozen=True)
class Reports:
    """Events of so many skeletons, about so many keys in each. Labels are drawn from as many."""

    skeletons: int
    keys: int

    @classmethod
    def of(cls, skeletons: int, share: float, passing: float) -> Reports:
        """With as many keys as let a subscription match that share of all events, if it matches `passing` of the events
        of one skeleton and one key."""
        return cls(skeletons, max(1, round(passing / (share * skeletons))))

    def event(self, number: int) -> tuple[str, str]:
        kind, left = below(draw(_KEYS, number), self.skeletons)
        key, left = below(left, self.keys)
        label, left = below(left, self.keys)
        stream, _ = below(left, len(STREAMS))
        nodes = {"o": f"<{BASE}o/{number}>", "m": f"<{BASE}m/{number}>", "s": key_term(key)}
        values = {"key": nodes["s"], "link": nodes["m"], **_values(number, label)}
        base = f"<{BASE}kind/{kind}/"
        hangs = _ARRANGEMENTS[kind % len(_ARRANGEMENTS)]
        lines = [f"{nodes[node]}\t{base}{role}>\t{values[role]}" for role, node in hangs.items()]
        return STREAMS[stream], "\n".join(lines)


def _values(number: int, label: int) -> dict[str, str]:
    value, left = below(draw(_REST, number), _HUNDRED)
    second, left = below(left, 86_400)
    form, left = below(left, 4)
    kind, left = below(left, 2)
    named, _ = below(left, CLASSES)
    return {
        "value": number_term(value, ("decimal", "double")[kind]),
        "time": time_term(second),
        "label": label_term(label, form),
        "class": f"<{BASE}class/{named}>",
    }


def key_term(key: int) -> str:
    return f"<{BASE}key/{key}>"


def number_term(millionths: int, kind: str = "decimal") -> str:
    """Values are from 0 to 100, in steps of a millionth."""
    return f'"{millionths // 1_000_000}.{millionths % 1_000_000:06}"^^<{XSD}{kind}>'


def time_term(second: int) -> str:
    return f'"2026-11-16T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"^^<{XSD}dateTime>'


def label_term(label: int, form: int) -> str:
    """Plain, in English, in French, or an IRI."""
    text = f"{label:06}-unit"
    return (f'"{text}"', f'"{text}"@en', f'"{text}"@fr', f"<{BASE}label/{text}>")[form]
