"""Building: compiled functions that describe constants and put groups into the table."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Bytes, Index, Records
from triplewire.matching.index.compiled import compiled
from triplewire.matching.index.fences import fence
from triplewire.matching.index.hashes import hashed
from triplewire.matching.index.keys import (
    BEGINNING,
    BEGUN,
    EVERYTHING,
    FIRST,
    HEADER,
    KINDS,
    LONGEST,
    NAMED,
    OBJECT,
    PREDICATE,
    PREDICATE_OBJECT,
    RELATED,
    SECOND,
    SUBJECT,
    SUBJECT_PREDICATE,
    bit_of,
    key_of,
    pair_kind,
    place_of,
    sift,
)
from triplewire.matching.index.machine import IRI, MOMENT, NUMBER, OTHER, STRING, constant_of
from triplewire.matching.index.numbers import DECIDED, moment, number
from triplewire.matching.index.programs import EQUAL, Slot
from triplewire.matching.index.programs import RELATED as WAYS

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
            cost = _cost(index, kind, key, one)
            if cost < best_cost:
                next_kind, next_key, next_cost = best_kind, best_key, best_cost
                best_row, best_kind, best_key, best_cost = row, kind, key, cost
            elif cost < next_cost and key != best_key:
                next_kind, next_key, next_cost = kind, key, cost
        index.groups[group].signature = signature
        first_hint = index.programs[program].first_hint
        for hint in range(first_hint, first_hint + index.programs[program].hints):
            cost = _choice_cost(index, program, group, index.hints[hint].choice)
            if cost < best_cost:
                best_cost, best_choice = cost, index.hints[hint].choice
        if best_choice < 0:
            pairs = best_kind <= SUBJECT_PREDICATE and next_kind <= SUBJECT_PREDICATE
            if pairs and best_cost > _CROWD:
                key = key_of(pair_kind(best_kind, next_kind), best_key, next_key)
                posted = enter(index, pair_kind(best_kind, next_kind), key, group, best_row, posted)
                second = key_of(SECOND, next_key, next_key)
                posted = _mark(index, SECOND, second, group, posted)
                best_kind, best_key = FIRST, key_of(FIRST, best_key, best_key)
            posted = enter(index, best_kind, best_key, group, best_row, posted)
            continue
        for hint in range(first_hint, first_hint + index.programs[program].hints):
            kind, key = _hinted(index, program, group, hint)
            if index.hints[hint].choice == best_choice and not _posted(index, group, key):
                posted = enter(index, kind, key, group, index.hints[hint].row, posted)
                posted = _marked(index, kind, program, group, hint, posted)
    return posted


@compiled
def _marked(index: Index, kind: int, program: int, group: int, hint: int, posted: int) -> int:
    """Mark the predicate of a hint, for those who look keys up: only then is more than hashes of terms made."""
    row = index.programs[program].first_row + index.hints[hint].row
    predicate = _hash(index, program, group, row, 1)
    if kind == BEGINNING:
        constant = index.constants[index.groups[group].first_constant + index.hints[hint].number]
        index.uses[KINDS + min(LONGEST, constant.length - 2)] = 1
        return _mark(index, BEGUN, key_of(BEGUN, predicate, predicate), group, posted)
    if kind >= RELATED:
        return _mark(index, NAMED, key_of(NAMED, predicate, np.uint64(kind)), group, posted)
    return posted


@compiled
def _mark(index: Index, kind: int, key: np.uint64, group: int, posted: int) -> int:
    """Have a key in the table, if only for its own sake."""
    if index.keys[place_of(index, key)].head >= 0:
        return posted
    return enter(index, kind, key, group, 0, posted)


@compiled
def _posted(index: Index, group: int, key: np.uint64) -> bool:
    """Is the group, the last that came, under the key already? An IN may name one constant twice."""
    place = index.keys[place_of(index, key)]
    return place.head >= 0 and index.postings[place.head].group == group


@compiled
def _choice_cost(index: Index, program: int, group: int, choice: int) -> int:
    """What it costs to be found under all keys of a choice."""
    total = 0
    first = index.programs[program].first_hint
    for hint in range(first, first + index.programs[program].hints):
        if index.hints[hint].choice == choice:
            kind, key = _hinted(index, program, group, hint)
            total += _cost(index, kind, key, np.uint64(0))
    return total


@compiled
def _hinted(index: Index, program: int, group: int, hint: int) -> tuple[int, np.uint64]:
    """The key that a hint makes; that of the predicate alone where its text is too short, or has escapes."""
    row = index.programs[program].first_row + index.hints[hint].row
    predicate = _hash(index, program, group, row, 1)
    constant = index.constants[index.groups[group].first_constant + index.hints[hint].number]
    way = index.hints[hint].way
    if way == EQUAL:
        return PREDICATE_OBJECT, key_of(PREDICATE_OBJECT, predicate, constant.hash)
    if way >= WAYS:
        kind = RELATED + way - WAYS
        return kind, key_of(kind, predicate, constant.hash)
    length = min(LONGEST, constant.length - 2)
    if length > 0 and plain(index.pool, constant.start + 1, length):
        beginning = hashed(index.pool, constant.start + 1, constant.start + 1 + length)
        return BEGINNING, key_of(BEGINNING, predicate, beginning)
    return PREDICATE, key_of(PREDICATE, predicate, predicate)


@compiled
def plain(data: Bytes, start: int, length: int) -> bool:
    """Are there no escapes in these bytes?"""
    for place in range(start, start + length):  # noqa: SIM110 (numba knows no generators)
        if data[place] == _BACKSLASH:
            return False
    return True


@compiled
def enter(index: Index, kind: int, key: np.uint64, group: int, row: int, posted: int) -> int:
    """Put a group in front of those that have its key; how many postings there are then."""
    place = index.keys[place_of(index, key)]
    posting = index.postings[posted]
    posting.group = group
    posting.row = row
    posting.following = place.head
    place.key = key
    fence()  # who reads meanwhile, in another process, finds a posting only when it is whole
    place.head = posted
    place.count += 1
    index.uses[kind] = 1
    sift(index, key)
    return posted + 1


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
    elif kind == BEGINNING or kind >= RELATED:
        often = 10
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
