"""Compiled functions that add groups to the index: constants, access keys, postings and member counts.

A group is posted under the access key that is cheapest to be found by, or under all keys of a filter's alternatives;
its signature says which keys an event must have.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels.arrays import Bytes, Int32, Records
from triplewire.kernels.compiler import compiled
from triplewire.kernels.words import fence, hash_bytes
from triplewire.matching.index import keys
from triplewire.matching.index.arrays import IndexArrays
from triplewire.matching.index.machine import INSTANT, IRI, NUMBER, OTHER, STRING, constant_index
from triplewire.matching.index.numbers import DECIDED, parse_instant, parse_number
from triplewire.matching.index.programs import HINT_EQUAL, HINT_NUMBER, HINT_PREFIX, HINT_SUFFIX, SlotKind
from triplewire.matching.index.programs import HINT_RELATED as RELATIONS

_CLASS = np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", np.uint8)
_CLASSES = np.uint64(hash_bytes(_CLASS, 0, len(_CLASS)))
_ENOUGH = 256
"""Sampled events from which on key frequencies are taken from the sample."""


@compiled
def add_posting(index: IndexArrays, kind: int, key: np.uint64, group: int, row: int, posted: int) -> int:
    """Put a group in front of the postings of its key. Return the number of postings."""
    entry = index.keys[keys.find_key(index, key)]
    posting = index.postings[posted]
    posting.group = group
    posting.row = row
    posting.following = entry.head
    entry.key = key
    fence()  # who reads meanwhile, in another process, finds a posting only when it is whole
    entry.head = posted
    entry.count += 1
    index.uses[kind] = 1
    keys.add_to_filter(index, key)
    return posted + 1


@compiled
def mark_key(index: IndexArrays, kind: int, key: np.uint64, group: int, posted: int) -> int:
    """Add a key to the table if it is not there, only to mark that it exists."""
    if index.keys[keys.find_key(index, key)].head >= 0:
        return posted
    return add_posting(index, kind, key, group, 0, posted)


@compiled
def has_posting(index: IndexArrays, group: int, key: np.uint64) -> bool:
    """Does the key's first posting belong to the group? An IN may name one constant twice."""
    entry = index.keys[keys.find_key(index, key)]
    return entry.head >= 0 and index.postings[entry.head].group == group


@compiled
def key_cost(index: IndexArrays, kind: int, key: np.uint64, one: np.uint64) -> int:
    """The cost of a posting under a key: the frequency of the key in events times the postings that it has."""
    entry = index.keys[keys.find_key(index, key)]
    crowd = int(entry.count) if entry.head >= 0 else 0
    if kind <= keys.SUBJECT and index.sampled[0] >= _ENOUGH:
        return keys.estimate_frequency(index, key) * (crowd + 1)
    frequency = 1
    if kind == keys.PREDICATE_OBJECT and one == _CLASSES:
        frequency = 1_000
    elif kind in (keys.PREDICATE, keys.OBJECT, keys.SUBJECT):
        frequency = 10_000
    elif kind == keys.PREFIX or kind >= keys.SUFFIX:
        frequency = 10
    elif kind == keys.HEADER:
        frequency = 100_000
    elif kind == keys.EVERYTHING:
        frequency = 1_000_000
    return frequency * (crowd + 1)


@compiled
def slot_hash(index: IndexArrays, program: int, group: int, row: int, entry: int) -> np.uint64:
    slot, name = index.slots[3 * row + entry].slot, index.slots[3 * row + entry].number
    return index.constants[constant_index(index, program, group, slot, name)].hash


@compiled
def rehash(index: IndexArrays, old: Records) -> None:
    """Move the keys of an old table to a new one."""
    for entry in range(len(old)):
        if old[entry].head >= 0:
            key = old[entry].key
            there = index.keys[keys.find_key(index, key)]
            there.key = key
            there.head = old[entry].head
            there.count = old[entry].count
            keys.add_to_filter(index, key)


_ESCAPE = 92


@compiled
def add_hint_postings(index: IndexArrays, program: int, group: int, choice: int, posted: int) -> int:
    """Post a group under all keys of a choice. Return the number of postings."""
    first = index.programs[program].first_hint
    for hint in range(first, first + index.programs[program].hints):
        kind, key = hint_key(index, program, group, hint)
        if index.hints[hint].choice == choice and not has_posting(index, group, key):
            posted = add_posting(index, kind, key, group, index.hints[hint].row, posted)
            posted = mark_hint(index, kind, program, group, hint, posted)
    return posted


@compiled
def choice_cost(index: IndexArrays, program: int, group: int, choice: int) -> int:
    """The cost of postings under all keys of a choice."""
    total = 0
    first = index.programs[program].first_hint
    for hint in range(first, first + index.programs[program].hints):
        if index.hints[hint].choice == choice:
            kind, key = hint_key(index, program, group, hint)
            total += key_cost(index, kind, key, np.uint64(0))
    return total


@compiled
def hint_key(index: IndexArrays, program: int, group: int, hint: int) -> tuple[int, np.uint64]:
    """The access key of a hint. It is that of the predicate alone if the text of the hint is too short, has escapes,
    or is a number that is not parsed here."""
    row = index.programs[program].first_row + index.hints[hint].row
    predicate = slot_hash(index, program, group, row, 1)
    constant = index.constants[index.groups[group].first_constant + index.hints[hint].number]
    way = index.hints[hint].way
    if way == HINT_EQUAL:
        return keys.PREDICATE_OBJECT, keys.key_of(keys.PREDICATE_OBJECT, predicate, constant.hash)
    if way == HINT_NUMBER and constant.kind == NUMBER:
        return keys.VALUE, keys.value_key(predicate, constant.value)
    if way >= RELATIONS:
        kind = keys.RELATED + way - RELATIONS
        return kind, keys.key_of(kind, predicate, constant.hash)
    length = min(keys.LONGEST_AFFIX, constant.length - 2)
    first, end = constant.start + 1, constant.start + constant.length - 1
    if way == HINT_PREFIX and length > 0 and has_no_escapes(index.pool, first, length):
        return keys.PREFIX, keys.key_of(keys.PREFIX, predicate, hash_bytes(index.pool, first, first + length))
    if way == HINT_SUFFIX and length > 0 and has_no_escapes(index.pool, first, end - first):
        return keys.SUFFIX, keys.key_of(keys.SUFFIX, predicate, hash_bytes(index.pool, end - length, end))
    return keys.PREDICATE, keys.key_of(keys.PREDICATE, predicate, predicate)


@compiled
def mark_hint(index: IndexArrays, kind: int, program: int, group: int, hint: int, posted: int) -> int:
    """Mark the predicate of a hint, because prefixes, suffixes, numbers and relations of objects are only looked up
    for marked ones."""
    row = index.programs[program].first_row + index.hints[hint].row
    predicate = slot_hash(index, program, group, row, 1)
    if kind in (keys.PREFIX, keys.SUFFIX):
        constant = index.constants[index.groups[group].first_constant + index.hints[hint].number]
        lengths = keys.PREFIX_LENGTHS if kind == keys.PREFIX else keys.SUFFIX_LENGTHS
        index.uses[lengths + min(keys.LONGEST_AFFIX, constant.length - 2)] = 1
        mark = keys.HAS_PREFIX if kind == keys.PREFIX else keys.HAS_SUFFIX
        return mark_key(index, mark, keys.key_of(mark, predicate, predicate), group, posted)
    if kind == keys.VALUE:
        # A number of an event that is not parsed may equal any constant.
        unclear = keys.key_of(keys.VALUE, predicate, keys.UNREAD_NUMBER)
        if not has_posting(index, group, unclear):
            posted = add_posting(index, keys.VALUE, unclear, group, index.hints[hint].row, posted)
        return mark_key(index, keys.HAS_VALUE, keys.key_of(keys.HAS_VALUE, predicate, predicate), group, posted)
    if kind >= keys.RELATED:
        return mark_key(
            index, keys.HAS_RELATION, keys.key_of(keys.HAS_RELATION, predicate, np.uint64(kind)), group, posted
        )
    return posted


@compiled
def has_no_escapes(data: Bytes, start: int, length: int) -> bool:
    for entry in range(start, start + length):  # noqa: SIM110 (numba knows no generators)
        if data[entry] == _ESCAPE:
            return False
    return True


_VARIABLE = int(SlotKind.VARIABLE)
_CROWD = 1
"""Groups under a key of one quad from which on further groups get keys of two quads."""
_QUOTE, _ANGLE = 34, 60


@compiled
def describe_constants(pool: Bytes, constants: Records, first: int, stop: int) -> None:
    """Fill in the hash, kind and value of constants from their texts."""
    for each in range(first, stop):
        start = constants[each].start
        end = start + constants[each].length
        constants[each].hash = hash_bytes(pool, start, end)
        constants[each].kind = OTHER
        constants[each].value = 0.0
        if end == start:
            continue
        if pool[start] == _ANGLE:
            constants[each].kind = IRI
        elif pool[end - 1] == _QUOTE:
            constants[each].kind = STRING
        else:
            state, value = parse_number(pool, start, end)
            kind = NUMBER
            if state != DECIDED:
                state, value = parse_instant(pool, start, end)
                kind = INSTANT
            if state == DECIDED:
                constants[each].kind = kind
                constants[each].value = value


@compiled
def link_groups(index: IndexArrays, first: int, stop: int, posted: int) -> int:
    """Post groups under their cheapest access key, or under all keys of a choice, and set their signatures. Return
    the number of postings."""
    for group in range(first, stop):
        program = index.groups[group].program
        signature = np.uint64(0)
        best_row, best_kind, best_key, best_cost, best_choice = 0, keys.EVERYTHING, np.uint64(0), 1 << 62, -1
        next_kind, next_key, next_cost = keys.EVERYTHING, np.uint64(0), 1 << 62
        for row in range(index.programs[program].rows):
            kind, one, other = _row_key(index, program, group, row)
            key = keys.key_of(kind, one, other)
            if kind in (keys.PREDICATE_OBJECT, keys.SUBJECT_PREDICATE, keys.PREDICATE):
                signature |= keys.bit_of(key)
            if kind == keys.PREDICATE_OBJECT:
                signature |= keys.bit_of(keys.key_of(keys.PREDICATE, one, one))
            elif kind == keys.SUBJECT_PREDICATE:
                signature |= keys.bit_of(keys.key_of(keys.PREDICATE, other, other))
            cost = key_cost(index, kind, key, one)
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
            pairs = best_kind <= keys.SUBJECT_PREDICATE and next_kind <= keys.SUBJECT_PREDICATE
            if pairs and _is_crowded(index, best_key):
                key = keys.key_of(keys.pair_kind(best_kind, next_kind), best_key, next_key)
                posted = add_posting(index, keys.pair_kind(best_kind, next_kind), key, group, best_row, posted)
                second = keys.key_of(keys.SECOND, next_key, next_key)
                posted = mark_key(index, keys.SECOND, second, group, posted)
                best_kind, best_key = keys.FIRST, keys.key_of(keys.FIRST, best_key, best_key)
            posted = add_posting(index, best_kind, best_key, group, best_row, posted)
            continue
        posted = add_hint_postings(index, program, group, best_choice, posted)
    return posted


@compiled
def _is_crowded(index: IndexArrays, key: np.uint64) -> bool:
    entry = index.keys[keys.find_key(index, key)]
    return entry.head >= 0 and entry.count >= _CROWD


@compiled
def _row_key(index: IndexArrays, program: int, group: int, row: int) -> tuple[int, np.uint64, np.uint64]:
    """The kind of the access key of a row, and the hashes that make it."""
    number_ = index.programs[program].first_row + row
    header = index.slots[3 * number_].header
    if header < 0:
        return keys.HEADER, np.uint64(-header), slot_hash(index, program, group, number_, 2)
    subject = index.slots[3 * number_].slot != _VARIABLE
    predicate = index.slots[3 * number_ + 1].slot != _VARIABLE
    object_ = index.slots[3 * number_ + 2].slot != _VARIABLE
    if predicate and object_:
        return (
            keys.PREDICATE_OBJECT,
            slot_hash(index, program, group, number_, 1),
            slot_hash(index, program, group, number_, 2),
        )
    if predicate and subject:
        return (
            keys.SUBJECT_PREDICATE,
            slot_hash(index, program, group, number_, 0),
            slot_hash(index, program, group, number_, 1),
        )
    for slot, kind in ((1, keys.PREDICATE), (2, keys.OBJECT), (0, keys.SUBJECT)):
        if (slot == 1 and predicate) or (slot == 2 and object_) or (slot == 0 and subject):
            one = slot_hash(index, program, group, number_, slot)
            return kind, one, one
    return keys.EVERYTHING, np.uint64(0), np.uint64(0)


@compiled
def add_members(groups: Records, numbers: Int32, bounds: np.ndarray, above: bool) -> None:
    """Add a member for each group number, and lower the group's bound to the easiest threshold."""
    for each in range(len(numbers)):
        group = groups[numbers[each]]
        group.bound = min(group.bound, bounds[each]) if above else max(group.bound, bounds[each])
        group.members += 1


@compiled
def remove_members(groups: Records, ended: Records) -> None:
    """Remove a member of the group of each ended subscription."""
    for each in range(len(ended)):
        groups[ended[each].group].members -= 1
