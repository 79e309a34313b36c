"""Samples: how often events have a key, counted for one event in some, in a sketch of fixed size. Compiled."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Index, Scratch
from triplewire.matching.index.keys import OBJECT, PREDICATE, SUBJECT, key_of
from triplewire.native.functions import compiled

COUNTERS = 1 << 14
EVERY = 32
"""Of so many events one is counted."""
_OLD = 1 << 20
"""Events after which what was counted counts half, so that old habits are forgotten."""
_KEYS = 5
"""Of a quad."""
_MASK = np.uint64(COUNTERS - 1)
_MILLION = 1_000_000


@compiled
def sampled(quads: int, index: Index, scratch: Scratch) -> None:
    """Count the keys of the event at hand. Others may count at the same time: it need not be exact."""
    index.sampled[0] += 1
    index.sampled[1] += _KEYS * quads
    for quad in range(quads):
        subject, predicate = scratch.terms[3 * quad].hash, scratch.terms[3 * quad + 1].hash
        object_ = scratch.terms[3 * quad + 2].hash
        index.sample[scratch.halves[2 * quad] & _MASK] += 1
        index.sample[scratch.halves[2 * quad + 1] & _MASK] += 1
        index.sample[key_of(PREDICATE, predicate, predicate) & _MASK] += 1
        index.sample[key_of(OBJECT, object_, object_) & _MASK] += 1
        index.sample[key_of(SUBJECT, subject, subject) & _MASK] += 1


@compiled
def often(index: Index, key: np.uint64) -> int:
    """How many events of a million have a key, or a little more. Keys share counters: what each of these has on the
    average is not counted, twice over."""
    count = int(index.sample[key & _MASK]) - 2 * (index.sampled[1] // COUNTERS)
    return 1 + max(0, count) * _MILLION // max(1, index.sampled[0])


def age(index: Index) -> None:
    """Let what was counted long ago count less."""
    if index.sampled[0] > _OLD:
        index.sample[:] //= 2
        index.sampled[:] //= 2
