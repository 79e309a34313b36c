"""Building: compiled functions that describe constants and put groups into the table."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Index
from triplewire.matching.index.entering import cost_of, enter, hash_at, mark
from triplewire.matching.index.hinting import choice_cost, hinted_into
from triplewire.matching.index.keys import (
    EVERYTHING,
    FIRST,
    HEADER,
    OBJECT,
    PREDICATE,
    PREDICATE_OBJECT,
    SECOND,
    SUBJECT,
    SUBJECT_PREDICATE,
    bit_of,
    key_of,
    pair_kind,
    place_of,
)
from triplewire.matching.index.machine import IRI, MOMENT, NUMBER, OTHER, STRING
from triplewire.matching.index.numbers import DECIDED, moment, number
from triplewire.matching.index.programs import Slot
from triplewire.native.arrays import Bytes, Records
from triplewire.native.functions import compiled
from triplewire.native.hashes import hashed

_VARIABLE = int(Slot.VARIABLE)
_CROWD = 1
"""Groups that a key of one quad has at most, before others are put under keys of two."""
_QUOTE, _ANGLE, _BACKSLASH = 34, 60, 92
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
def link(index: Index, first: int, stop: int, posted: int) -> int:
    """Put groups under the access key that is cheapest, or under all of a choice of keys, and let their signatures say
    what they need. There are so many postings, and then as many as it says."""
    for group in range(first, stop):
        program = index.groups[group].program
        signature = np.uint64(0)
        best_row, best_kind, best_key, best_cost, best_choice = 0, EVERYTHING, np.uint64(0), 1 << 62, -1
        next_kind, next_key, next_cost = EVERYTHING, np.uint64(0), 1 << 62
        for row in range(index.programs[program].rows):
            kind, one, other = _named(index, program, group, row)
            key = key_of(kind, one, other)
            if kind in (PREDICATE_OBJECT, SUBJECT_PREDICATE, PREDICATE):
                signature |= bit_of(key)
            if kind == PREDICATE_OBJECT:
                signature |= bit_of(key_of(PREDICATE, one, one))
            elif kind == SUBJECT_PREDICATE:
                signature |= bit_of(key_of(PREDICATE, other, other))
            cost = cost_of(index, kind, key, one)
            if cost < best_cost:
                next_kind, next_key, next_cost = best_kind, best_key, best_cost
                best_row, best_kind, best_key, best_cost = row, kind, key, cost
            elif cost < next_cost and key != best_key:
                next_kind, next_key, next_cost = kind, key, cost
        index.groups[group].signature = signature
        first_hint = index.programs[program].first_hint
        for hint in range(first_hint, first_hint + index.programs[program].hints):
            cost = choice_cost(index, program, group, index.hints[hint].choice)
            if cost < best_cost:
                best_cost, best_choice = cost, index.hints[hint].choice
        if best_choice < 0:
            pairs = best_kind <= SUBJECT_PREDICATE and next_kind <= SUBJECT_PREDICATE
            if pairs and _crowded(index, best_key):
                key = key_of(pair_kind(best_kind, next_kind), best_key, next_key)
                posted = enter(index, pair_kind(best_kind, next_kind), key, group, best_row, posted)
                second = key_of(SECOND, next_key, next_key)
                posted = mark(index, SECOND, second, group, posted)
                best_kind, best_key = FIRST, key_of(FIRST, best_key, best_key)
            posted = enter(index, best_kind, best_key, group, best_row, posted)
            continue
        posted = hinted_into(index, program, group, best_choice, posted)
    return posted


@compiled
def _crowded(index: Index, key: np.uint64) -> bool:
    place = index.keys[place_of(index, key)]
    return place.head >= 0 and place.count >= _CROWD


@compiled
def _named(index: Index, program: int, group: int, row: int) -> tuple[int, np.uint64, np.uint64]:
    """The kind of key that the constants of a row make, and their hashes."""
    number_ = index.programs[program].first_row + row
    header = index.places[3 * number_].header
    if header < 0:
        return HEADER, np.uint64(-header), hash_at(index, program, group, number_, 2)
    subject = index.places[3 * number_].slot != _VARIABLE
    predicate = index.places[3 * number_ + 1].slot != _VARIABLE
    object_ = index.places[3 * number_ + 2].slot != _VARIABLE
    if predicate and object_:
        return PREDICATE_OBJECT, hash_at(index, program, group, number_, 1), hash_at(index, program, group, number_, 2)
    if predicate and subject:
        return SUBJECT_PREDICATE, hash_at(index, program, group, number_, 0), hash_at(index, program, group, number_, 1)
    for slot, kind in ((1, PREDICATE), (2, OBJECT), (0, SUBJECT)):
        if (slot == 1 and predicate) or (slot == 2 and object_) or (slot == 0 and subject):
            one = hash_at(index, program, group, number_, slot)
            return kind, one, one
    return EVERYTHING, np.uint64(0), np.uint64(0)
