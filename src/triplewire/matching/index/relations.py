"""Ontology relations as arrays that compiled code looks names up in.

For each relation, and each name that an event may hold, the names are listed that a subscription may compare it with.
So an event that has a class is found by subscriptions to any class above it, with one look-up for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from triplewire.kernels.arrays import Bytes, Int32, Int64, Records
from triplewire.kernels.compiler import compiled
from triplewire.kernels.words import hash_texts, same_bytes
from triplewire.matching.index.programs import RELATIONS

RELATION_NAME = np.dtype([("hash", "u8"), ("start", "i8"), ("length", "i8")])
"""A name in an ontology, with its text in the pool."""


class OntologyRelations(NamedTuple):
    """The ontologies at one position. The names that a name is related to are `others[first[i]:first[i + 1]]`, where
    `i` is `relation * (len(names) + 1) + name`."""

    names: Records
    pool: Bytes
    slots: Int32
    """A hash table of name numbers, -1 where free; its length is a power of two."""
    first: Int64
    others: Int32


def build_relations(rows: Sequence[tuple[str, str, str]]) -> OntologyRelations:
    """Build the arrays from the rows of a closure: relation, lower, upper."""
    closure = pa.table(
        dict(zip("rlu", zip(*rows, strict=True), strict=True)) if rows else {"r": [""], "l": [""], "u": [""]}
    )
    ends = pa.chunked_array([*closure["l"].chunks, *closure["u"].chunks]).combine_chunks().dictionary_encode()
    numbers = ends.indices.to_numpy()
    lower, upper = numbers[: len(closure)], numbers[len(closure) :]
    relation = closure["r"].to_numpy()
    pairs = [*_pairs(relation, lower, upper)]
    count = len(ends.dictionary)
    names, pool = _names(ends.dictionary)
    first = np.zeros(len(RELATIONS) * (count + 1) + 1, np.int64)
    tally = [np.bincount(value, minlength=count + 1) for value, _ in pairs]
    np.cumsum(np.concatenate(tally), out=first[1:])
    others = np.concatenate([other[np.argsort(value, kind="stable")] for value, other in pairs]).astype(np.int32)
    return OntologyRelations(names, pool, _slots(names), first, others)


@cache
def no_relations() -> OntologyRelations:
    return build_relations(())


def _pairs(relation: np.ndarray, lower: Int32, upper: Int32) -> Iterator[tuple[Int32, Int32]]:
    """For each relation, the names of events and the names that they are related to."""
    for name, turned in RELATIONS:
        rows = relation == name
        yield (upper[rows], lower[rows]) if turned else (lower[rows], upper[rows])


def _names(dictionary: pa.StringArray) -> tuple[Records, Bytes]:
    texts = [each.encode() for each in dictionary.to_pylist()]
    start = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(each) for each in texts], out=start[1:])
    pool = np.frombuffer(bytearray(b"".join(texts) or b"\0"), np.uint8)
    names = np.zeros(len(texts), RELATION_NAME)
    names["hash"], names["start"], names["length"] = hash_texts(pool, start), start[:-1], np.diff(start)
    return names, pool


def _slots(names: Records) -> Int32:
    slots = np.full(1 << max(4, (2 * len(names)).bit_length()), -1, np.int32)
    _fill(names, slots)
    return slots


@compiled
def _fill(names: Records, slots: Int32) -> None:
    mask = len(slots) - 1
    for number in range(len(names)):
        slot = np.int64(names[number].hash) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number


@compiled
def find_name(relations: OntologyRelations, hash_: np.uint64, text: Bytes, start: int, stop: int) -> int:
    """The number of a name, or -1 if no ontology has it."""
    names, slots = relations.names, relations.slots
    mask = len(slots) - 1
    slot = np.int64(hash_) & mask
    while slots[slot] >= 0:
        name = names[slots[slot]]
        if name.hash == hash_ and same_bytes(text, start, stop, relations.pool, name.start, name.length):
            return slots[slot]
        slot = (slot + 1) & mask
    return -1


@compiled
def relation_span(relations: OntologyRelations, relation: int, name: int) -> tuple[int, int]:
    """The range in `others` of the names that a name is related to."""
    slot = relation * (len(relations.names) + 1) + name
    return relations.first[slot], relations.first[slot + 1]


@compiled
def relation_holds(
    relations: OntologyRelations, relation: int, name: int, pool: Bytes, start: int, stop: int, hash_: np.uint64
) -> bool:
    """Is a name related to the name in a text?"""
    begin, end = relation_span(relations, relation, name)
    for slot in range(begin, end):
        other = relations.names[relations.others[slot]]
        if other.hash == hash_ and same_bytes(pool, start, stop, relations.pool, other.start, other.length):
            return True
    return False
