"""The data of `bench zones`: a stream of tweets, skewed as real ones are. Everything follows from their number.

A tweet is an event of nine quads, and a tenth with their number, which EventCloud stores with every event. Few users
write most of them, few topics are in most of them, ids and times grow, and nearly all IRIs begin alike.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random

from triplewire.model.terms import RDF_TYPE, TW, XSD

QUADS = 10
"""In an event: nine, and the one that counts them."""

TWITTER = "http://twitter.com/"
SIOC = "http://rdfs.org/sioc/ns#"
DC = "http://purl.org/dc/terms/"
START = datetime(2013, 6, 1, 12, tzinfo=UTC)

_USERS, _TOPICS, _WORDS = 3_000, 800, 2_000
_SYLLABLES = ("ka", "ri", "to", "me", "lu", "sha", "ne", "dor", "vi", "pa", "st", "en", "go", "ya", "fi", "ber")
_LANGUAGES = ("en", "ja", "es", "pt", "id", "ar", "fr", "tr", "ru", "ko")
_PLACES = ("London", "São Paulo", "東京", "New York", "Jakarta", "Paris", "Istanbul", "Москва", "Los Angeles", "Nice")

_EVENT = "".join(
    f"<{TWITTER}{{user}}/status/{{id}}> {predicate} {obj} <{TWITTER}{{user}}#{{stamp}}-{{id}}> .\n"
    for predicate, obj in (
        (RDF_TYPE, f"<{SIOC}MicroblogPost>"),
        (f"<{SIOC}has_creator>", f"<{TWITTER}{{user}}>"),
        (f"<{SIOC}content>", '"{content}"@{language}'),
        (f"<{DC}created>", f'"{{time:%Y-%m-%dT%H:%M:%SZ}}"^^<{XSD}dateTime>'),
        (f"<{DC}language>", '"{language}"'),
        (f"<{SIOC}topic>", f"<{TWITTER}search?q=%23{{topic}}>"),
        (f"<{TWITTER}ns#followers>", f'"{{followers}}"^^<{XSD}integer>'),
        (f"<{TWITTER}ns#retweets>", f'"{{retweets}}"^^<{XSD}integer>'),
        (f"<{TWITTER}ns#place>", '"{place}"'),
        (f"<{TW}quads>", f'"{QUADS - 1}"^^<{XSD}integer>'),
    )
)


@dataclass(frozen=True)
class Tweets:
    """So many of them, in the order in which they were written."""

    events: int = 10_000

    def bodies(self, size: int) -> Iterator[bytes]:
        """All of them as N-Quads, at most `size` in a body."""
        lines = self._lines()
        for first in range(0, self.events, size):
            yield "".join(next(lines) for _ in range(min(size, self.events - first))).encode()

    def _lines(self) -> Iterator[str]:
        random = Random(32)
        users, topics, words = (_names(random, count) for count in (_USERS, _TOPICS, _WORDS))
        time = START
        for number in range(self.events):
            time += timedelta(seconds=random.expovariate(1.0))
            yield _EVENT.format(
                user=_zipf(random, users),
                id=340_000_000_000_000_000 + number * 4_194_304_000 + random.randrange(4_096),
                stamp=int(time.timestamp()),
                content=" ".join(_zipf(random, words) for _ in range(random.randint(4, 14))),
                language=_zipf(random, _LANGUAGES),
                topic=_zipf(random, topics),
                time=time,
                followers=int(random.lognormvariate(5.5, 1.8)),
                retweets=int(random.paretovariate(1.1)) - 1,
                place=_zipf(random, _PLACES),
            )


def _names(random: Random, count: int) -> list[str]:
    return ["".join(random.choices(_SYLLABLES, k=random.randint(2, 4))) for _ in range(count)]


def _zipf(random: Random, names: Sequence[str]) -> str:
    """The second half as often as the first, the third a third as often, and so on."""
    weights = _harmonic(len(names))
    return names[bisect(weights, random.random() * weights[-1])]


_SUMS: dict[int, Sequence[float]] = {}


def _harmonic(count: int) -> Sequence[float]:
    if count not in _SUMS:
        _SUMS[count] = [*accumulate(1 / number for number in range(1, count + 1))]
    return _SUMS[count]
