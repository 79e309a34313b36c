"""Hinting: the access keys that filters make. Compiled."""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Index
from triplewire.matching.index.entering import cost_of, enter, entered, hash_at, mark
from triplewire.matching.index.keys import (
    BEGINNING,
    BEGUN,
    KINDS,
    LONGEST,
    NAMED,
    PREDICATE,
    PREDICATE_OBJECT,
    RELATED,
    UNCLEAR,
    VALUE,
    VALUED,
    key_of,
    value_key,
)
from triplewire.matching.index.machine import NUMBER
from triplewire.matching.index.programs import BEGINS, EQUAL, EQUAL_NUMBER
from triplewire.matching.index.programs import RELATED as RELATIONS
from triplewire.native.arrays import Bytes
from triplewire.native.functions import compiled
from triplewire.native.hashes import hashed

_BACKSLASH = 92


@compiled
def hinted_into(index: Index, program: int, group: int, choice: int, posted: int) -> int:
    """Put a group under all keys of a choice; how many postings there are then."""
    first = index.programs[program].first_hint
    for hint in range(first, first + index.programs[program].hints):
        kind, key = hinted(index, program, group, hint)
        if index.hints[hint].choice == choice and not entered(index, group, key):
            posted = enter(index, kind, key, group, index.hints[hint].row, posted)
            posted = marked(index, kind, program, group, hint, posted)
    return posted


@compiled
def choice_cost(index: Index, program: int, group: int, choice: int) -> int:
    """What it costs to be found under all keys of a choice."""
    total = 0
    first = index.programs[program].first_hint
    for hint in range(first, first + index.programs[program].hints):
        if index.hints[hint].choice == choice:
            kind, key = hinted(index, program, group, hint)
            total += cost_of(index, kind, key, np.uint64(0))
    return total


@compiled
def hinted(index: Index, program: int, group: int, hint: int) -> tuple[int, np.uint64]:
    """The key that a hint makes; that of the predicate alone where it makes none: its text is too short, has escapes,
    or is a number that is not read here."""
    row = index.programs[program].first_row + index.hints[hint].row
    predicate = hash_at(index, program, group, row, 1)
    constant = index.constants[index.groups[group].first_constant + index.hints[hint].number]
    way = index.hints[hint].way
    if way == EQUAL:
        return PREDICATE_OBJECT, key_of(PREDICATE_OBJECT, predicate, constant.hash)
    if way == EQUAL_NUMBER and constant.kind == NUMBER:
        return VALUE, value_key(predicate, constant.value)
    if way >= RELATIONS:
        kind = RELATED + way - RELATIONS
        return kind, key_of(kind, predicate, constant.hash)
    length = min(LONGEST, constant.length - 2)
    if way == BEGINS and length > 0 and plain(index.pool, constant.start + 1, length):
        beginning = hashed(index.pool, constant.start + 1, constant.start + 1 + length)
        return BEGINNING, key_of(BEGINNING, predicate, beginning)
    return PREDICATE, key_of(PREDICATE, predicate, predicate)


@compiled
def marked(index: Index, kind: int, program: int, group: int, hint: int, posted: int) -> int:
    """Mark the predicate of a hint, for those who look keys up: only then is more than hashes of terms made."""
    row = index.programs[program].first_row + index.hints[hint].row
    predicate = hash_at(index, program, group, row, 1)
    if kind == BEGINNING:
        constant = index.constants[index.groups[group].first_constant + index.hints[hint].number]
        index.uses[KINDS + min(LONGEST, constant.length - 2)] = 1
        return mark(index, BEGUN, key_of(BEGUN, predicate, predicate), group, posted)
    if kind == VALUE:
        # Numbers of events that are not read here may be any.
        unclear = key_of(VALUE, predicate, UNCLEAR)
        if not entered(index, group, unclear):
            posted = enter(index, VALUE, unclear, group, index.hints[hint].row, posted)
        return mark(index, VALUED, key_of(VALUED, predicate, predicate), group, posted)
    if kind >= RELATED:
        return mark(index, NAMED, key_of(NAMED, predicate, np.uint64(kind)), group, posted)
    return posted


@compiled
def plain(data: Bytes, start: int, length: int) -> bool:
    """Are there no escapes in these bytes?"""
    for place in range(start, start + length):  # noqa: SIM110 (numba knows no generators)
        if data[place] == _BACKSLASH:
            return False
    return True
