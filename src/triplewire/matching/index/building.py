"""Building: compiled functions that describe constants and put groups into the table."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Bytes, Index, Int64, Records, UInt64
from triplewire.matching.index.compiled import compiled
from triplewire.matching.index.hashes import hashed
from triplewire.matching.index.keys import (
    EVERYTHING,
    HEADER,
    OBJECT,
    PREDICATE,
    PREDICATE_OBJECT,
    SUBJECT,
    SUBJECT_PREDICATE,
    bit_of,
    key_of,
    place_of,
    sift,
)
from triplewire.matching.index.machine import IRI, MOMENT, NUMBER, OTHER, STRING, constant_of
from triplewire.matching.index.numbers import DECIDED, moment, number
from triplewire.matching.index.programs import Slot

_VARIABLE = int(Slot.VARIABLE)
_QUOTE, _ANGLE = 34, 60
_CLASS = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", np.uint8)
_CLASSES = np.uint64(hashed(_CLASS, 0, len(_CLASS)))


@compiled
def describe(pool: Bytes, constants: Records, first: int, stop: int) -> None:
    """Fill in what follows from the texts of constants."""
    for each in range(first, stop):
        start = constants[each].start
        end = start + constants[each].length
        constants[each].hash = hashed(pool, start, end)
        constants[each].kind = OTHER
        constants[each].value = 0.0
        if end == start:
            continue
        if pool[start] == _ANGLE:
            constants[each].kind = IRI
        elif pool[end - 1] == _QUOTE:
            constants[each].kind = STRING
        else:
            state, value = number(pool, start, end)
            kind = NUMBER
            if state != DECIDED:
                state, value = moment(pool, start, end)
                kind = MOMENT
            if state == DECIDED:
                constants[each].kind = kind
                constants[each].value = value


@compiled
def link(index: Index, first: int, stop: int) -> None:
    """Put groups under the access key that is cheapest, and let their signatures say what they need."""
    for group in range(first, stop):
        program = index.groups[group].program
        signature = np.uint64(0)
        best_row, best_kind, best_key, best_cost = 0, EVERYTHING, np.uint64(0), 1 << 62
        for row in range(index.programs[program].rows):
            kind, one, other = _named(index, program, group, row)
            key = key_of(kind, one, other)
            if kind in (PREDICATE_OBJECT, SUBJECT_PREDICATE, PREDICATE):
                signature |= bit_of(key)
            if kind == PREDICATE_OBJECT:
                signature |= bit_of(key_of(PREDICATE, one, one))
            elif kind == SUBJECT_PREDICATE:
                signature |= bit_of(key_of(PREDICATE, other, other))
            cost = _cost(index, kind, key, one)
            if cost < best_cost:
                best_row, best_kind, best_key, best_cost = row, kind, key, cost
        index.groups[group].signature = signature
        index.groups[group].access = best_row
        enter(index, best_kind, best_key, group)


@compiled
def enter(index: Index, kind: int, key: np.uint64, group: int) -> None:
    """Put a group in front of those that have its key."""
    place = index.keys[place_of(index, key)]
    index.groups[group].following = place.head
    place.key = key
    place.head = group
    place.count += 1
    index.uses[kind] = 1
    sift(index, key)


@compiled
def _cost(index: Index, kind: int, key: np.uint64, one: np.uint64) -> int:
    """What it costs to be found under a key: how often events have it, by its kind, and who is there already."""
    place = index.keys[place_of(index, key)]
    crowd = int(place.count) if place.head >= 0 else 0
    often = 1
    if kind == PREDICATE_OBJECT and one == _CLASSES:
        often = 1_000
    elif kind in (PREDICATE, OBJECT, SUBJECT):
        often = 10_000
    elif kind == HEADER:
        often = 100_000
    elif kind == EVERYTHING:
        often = 1_000_000
    return often * (crowd + 1)


@compiled
def _named(index: Index, program: int, group: int, row: int) -> tuple[int, np.uint64, np.uint64]:
    """The kind of key that the constants of a row make, and their hashes."""
    number_ = index.programs[program].first_row + row
    header = index.places[3 * number_].header
    if header < 0:
        return HEADER, np.uint64(-header), _hash(index, program, group, number_, 2)
    subject = index.places[3 * number_].slot != _VARIABLE
    predicate = index.places[3 * number_ + 1].slot != _VARIABLE
    object_ = index.places[3 * number_ + 2].slot != _VARIABLE
    if predicate and object_:
        return PREDICATE_OBJECT, _hash(index, program, group, number_, 1), _hash(index, program, group, number_, 2)
    if predicate and subject:
        return SUBJECT_PREDICATE, _hash(index, program, group, number_, 0), _hash(index, program, group, number_, 1)
    for slot, kind in ((1, PREDICATE), (2, OBJECT), (0, SUBJECT)):
        if (slot == 1 and predicate) or (slot == 2 and object_) or (slot == 0 and subject):
            one = _hash(index, program, group, number_, slot)
            return kind, one, one
    return EVERYTHING, np.uint64(0), np.uint64(0)


@compiled
def _hash(index: Index, program: int, group: int, row: int, place: int) -> np.uint64:
    slot, name = index.places[3 * row + place].slot, index.places[3 * row + place].number
    return index.constants[constant_of(index, program, group, slot, name)].hash


@compiled
def rehash(index: Index, old: Records) -> None:
    """Put the keys of an old table into a new one."""
    for place in range(len(old)):
        if old[place].head >= 0:
            key = old[place].key
            there = index.keys[place_of(index, key)]
            there.key = key
            there.head = old[place].head
            there.count = old[place].count
            sift(index, key)


@compiled
def hash_all(text: Bytes, start: Int64) -> UInt64:
    """The hashes of texts that lie one after the other."""
    found = np.zeros(len(start) - 1, np.uint64)
    for each in range(len(found)):
        found[each] = hashed(text, start[each], start[each + 1])
    return found
