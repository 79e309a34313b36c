"""Emitting: what follows when a node has been matched, its slots being known."""

from __future__ import annotations

import numpy as np

from triplewire.kernels.compiler import Bytes, compiled, inlined
from triplewire.kernels.words import hash_bytes, hash_pair, same_bytes
from triplewire.ongoing.network.arrays import ANSWER, PARTIAL, ROW, SLOTS, Out, Plan
from triplewire.ongoing.network.chains import Role
from triplewire.ongoing.network.tables import has, slot_of, some

JOIN, SAME, NEW, LIFT = int(Role.JOIN), int(Role.SAME), int(Role.NEW), int(Role.LIFT)
ADDRESSES = 20_000
"""Places that hashes are spread over, as many as the paper has nodes; buckets are made of them."""

LIFTED = np.uint64(7)
"""Tells hashes of constants apart from others."""

_TAB = np.uint8(9)
_TURN = np.uint64(17)
_ADDRESSES = np.uint64(ADDRESSES)


@inlined
def address_of(plan: Plan, key: np.uint64, salt: np.uint64) -> int:
    """Where a row belongs: with its values, or with its pattern."""
    chosen = key if plan.spread[0] else salt
    return (chosen >> _TURN) % _ADDRESSES  # type: ignore[return-value]


@inlined
def copied(source: Bytes, start: int, stop: int, target: Bytes, place: int) -> int:
    """Copy bytes; where they end."""
    for at in range(start, stop):
        target[place + at - start] = source[at]
    return place + stop - start


@compiled
def slots_of(text: Bytes, start: int, length: int, out: Out) -> int:
    """Find the slots in a text; how many there are."""
    if length == 0:
        return 0
    count, begin = 0, 0
    for at in range(length):
        if text[start + at] == _TAB:
            out.starts[count], out.stops[count] = begin, at
            count, begin = count + 1, at + 1
    out.starts[count], out.stops[count] = begin, length
    return count + 1


@inlined
def with_slot(out: Out, base: int, end: int, count: int, source: Bytes, start: int, stop: int) -> int:
    """Add a slot to the text that begins at `base`; where it ends then."""
    if count > 0:
        out.text[end] = _TAB
        end += 1
    out.starts[count] = end - base
    end = copied(source, start, stop, out.text, end)
    out.stops[count] = end - base
    return end


@compiled
def told(
    plan: Plan, out: Out, node: int, base: int, end: int, oldest: int, newest: int, began: int, ended: int
) -> bool:
    """A node was matched, and the text of its slots lies between two places of the room for rows: hand it to the nodes
    behind, and to whoever waits for it. False where there is no room."""
    record = plan.nodes[node]
    if newest - oldest >= record.span or ended - began >= record.within:
        return True
    if record.lifts >= 0 and not _answered(plan, out, node, base, end, oldest, newest, ended - began):
        return False
    length, place = end - base, base
    for each in range(record.first_child, record.first_child + record.children):
        count = out.counts[0]
        if count == len(out.rows) or place + length > len(out.text):
            return False
        if place != base:
            copied(out.text, base, end, out.text, place)
        child = plan.children[each]
        row, salt = out.rows[count], plan.nodes[child].salt
        key = _key(plan, out, child, base)
        row.key, row.id, row.kind = key, plan.nodes[child].id, PARTIAL
        row.oldest, row.newest, row.began, row.ended = oldest, newest, began, ended
        row.start, row.length = place, length
        row.address = -1 if has(plan.heavy, some(key)) else address_of(plan, key, salt)
        place += length
        out.counts[0] = count + 1
        out.counts[1] = place
    return True


@compiled
def _key(plan: Plan, out: Out, node: int, base: int) -> np.uint64:
    """By which a triple and what waits at a node meet."""
    key = plan.nodes[node].salt
    for place in range(3):
        if plan.roles[3 * node + place] == JOIN:
            slot = plan.references[3 * node + place]
            found = hash_bytes(out.text, base + out.starts[slot], base + out.stops[slot])
            key = hash_pair(key, found, np.uint64(place))
    return key


@compiled
def _answered(plan: Plan, out: Out, node: int, base: int, end: int, oldest: int, newest: int, time: int) -> bool:
    """Tell the groups whose constants are in the slots. False where there is no room."""
    record = plan.nodes[node]
    key = record.id
    for each in range(record.first_lift, record.first_lift + record.lifts):
        slot = plan.lifts[each]
        key = hash_pair(key, hash_bytes(out.text, base + out.starts[slot], base + out.stops[slot]), LIFTED)
    found = plan.by_constants[slot_of(plan.by_constants, some(key))]
    number = found.head if found.key != 0 else -1
    while number >= 0:
        group = plan.groups[number]
        fits = group.alive != 0 and group.node == node and newest - oldest < group.span and time < group.within
        if fits and _constants_are(plan, out, node, base, number):
            count, place = out.counts[2], out.counts[3]
            if count == len(out.answers) or place + end - base > len(out.told):
                return False
            answer = out.answers[count]
            answer.group, answer.oldest, answer.newest = number, oldest, newest
            answer.start, answer.length = place, end - base
            out.counts[3] = copied(out.text, base, end, out.told, place)
            out.counts[2] = count + 1
        number = group.following
    return True


@compiled
def _constants_are(plan: Plan, out: Out, node: int, base: int, number: int) -> bool:
    """Are the constants of a group those in the slots? Hashes only guess."""
    record, group = plan.nodes[node], plan.groups[number]
    place, stop = group.start, group.start + group.length
    for each in range(record.first_lift, record.first_lift + record.lifts):
        slot = plan.lifts[each]
        length = out.stops[slot] - out.starts[slot]
        if each > record.first_lift:
            place += 1
        start = base + out.starts[slot]
        if place + length > stop or not same_bytes(out.text, start, start + length, plan.pool, place, length):
            return False
        place += length
    return place == stop


def room(rows: int, text: int, answers: int, told_bytes: int, ports: int = 0) -> Out:
    """For so many rows and answers, with so many bytes; and, where triples come in, for so many ports."""
    return Out(
        rows=np.zeros(rows, ROW),
        text=np.zeros(text, np.uint8),
        answers=np.zeros(answers, ANSWER),
        told=np.zeros(told_bytes, np.uint8),
        counts=np.zeros(4, np.int64),
        seen=np.zeros(ports, np.int64),
        starts=np.zeros(SLOTS + 3, np.int32),
        stops=np.zeros(SLOTS + 3, np.int32),
    )
