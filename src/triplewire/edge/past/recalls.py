"""Recalls: how much of streams an edge remembers, as settings say it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from triplewire.config import limits
from triplewire.model.errors import BadRequest

_SIZES = {"kB": 1024, "MB": 1024**2, "GB": 1024**3}
_AGES = {"s": 1.0, "m": 60.0, "h": 3_600.0}
_SAID = re.compile(r"(?:(?P<stream>[^=\s]+)=)?(?:(?P<nothing>0)|(?P<count>[0-9]+)(?P<unit>kB|MB|GB|s|m|h))")


@dataclass(frozen=True)
class Recall:
    """Bytes that are remembered of all streams together; of one stream by its name, bytes and seconds."""

    size: int = limits.MEMORY_BYTES
    seconds: float = inf
    """Of streams that are not named."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    ages: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def parsed(cls, texts: Iterable[str]) -> Recall:
        """Of texts such as `64MB`, in all, `30s`, of each stream, and of one stream `home=8MB`, `home=10s` or
        `alerts=0`. Raises BadRequest."""
        size, seconds = limits.MEMORY_BYTES, inf
        sizes: dict[str, int] = {}
        ages: dict[str, float] = {}
        for stream, amount in map(_parsed, texts):
            match stream, amount:
                case None, int():
                    size = amount
                case None, float():
                    seconds = amount
                case str(), int():
                    sizes[stream] = amount
                case str(), float():
                    ages[stream] = amount
        return cls(size, seconds, sizes, ages)

    def of(self, stream: str) -> int:
        """Bytes of one stream."""
        return min(self.size, self.sizes.get(stream, self.size))

    def age(self, stream: str) -> float:
        """Seconds of one stream."""
        return self.ages.get(stream, self.seconds)


def _parsed(text: str) -> tuple[str | None, int | float]:
    found = _SAID.fullmatch(text)
    if not found:
        raise BadRequest(
            f"{text!r} does not say what to remember: say 64MB for all streams, 30s for each, "
            "and for one of them home=8MB, home=10s or home=0"
        )
    if found["nothing"]:
        return found["stream"], 0
    count, unit = int(found["count"]), found["unit"]
    return found["stream"], count * _SIZES[unit] if unit in _SIZES else count * _AGES[unit]
