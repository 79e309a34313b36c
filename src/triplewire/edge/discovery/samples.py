"""Samples: what the newest page of a stream has in it, as those see it who ask.

What a stream is about can be told from some hundred events; to look at all of them would cost more each day.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from triplewire.access import Sight
from triplewire.config import limits
from triplewire.model.clock import Clock
from triplewire.model.terms import RDF_TYPE

_NAMESPACE = re.compile(r"<(.*[#/:])[^#/:]*>")
Rows = Callable[[str, Sight | None], Iterable[Mapping[str, Any]]]
"""The newest events of a stream, as somebody sees them."""


@dataclass(frozen=True)
class Sample:
    """Counts of some events. Predicates and classes are terms, the most frequent first."""

    events: int = 0
    triples: int = 0
    subjects: int = 0
    predicates: tuple[tuple[str, int], ...] = ()
    classes: tuple[tuple[str, int], ...] = ()

    @property
    def vocabularies(self) -> list[str]:
        """The namespaces of predicates and classes."""
        found = (_NAMESPACE.fullmatch(term) for term, _ in (*self.predicates, *self.classes))
        return sorted({each[1] for each in found if each})


def sampled(texts: Iterable[str]) -> Sample:
    """Of the texts of events."""
    events, triples, subjects = 0, 0, set[str]()
    predicates, classes = Counter[str](), Counter[str]()
    for text in texts:
        events += 1
        for line in text.split("\n"):
            subject, predicate, object_ = line.split("\t")
            triples += 1
            subjects.add(subject)
            predicates[predicate] += 1
            if predicate == RDF_TYPE:
                classes[object_] += 1
    return Sample(events, triples, len(subjects), _most(predicates), _most(classes))


def _most(counted: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counted.items(), key=lambda each: (-each[1], each[0]))[: limits.SAMPLE_TERMS])


class Samples:
    """Of any stream, good for some seconds: what is erased meanwhile is not counted for longer. Any thread may ask."""

    def __init__(self, rows: Rows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._known: OrderedDict[tuple[str, Sight | None], tuple[float, Sample]] = OrderedDict()
        self._turn = Lock()

    def of(self, stream: str, sight: Sight | None) -> Sample:
        key, now = (stream, sight), self._clock.ticks()
        with self._turn:
            taken, sample = self._known.get(key, (-float("inf"), Sample()))
        if now - taken < limits.SAMPLE_SECONDS:
            return sample
        sample = sampled(row["text"] for row in self._rows(stream, sight))
        with self._turn:
            self._known[key] = now, sample
            self._known.move_to_end(key)
            while len(self._known) > limits.SAMPLES:
                self._known.popitem(last=False)
        return sample
