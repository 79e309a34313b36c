"""Joining: rows that come in, held against those that are kept."""

from __future__ import annotations

import numpy as np

from triplewire.kernels.compiler import Bytes, Int64, compiled, inlined
from triplewire.kernels.words import same_bytes
from triplewire.ongoing.network.arrays import PROBE, SPREAD, Held, Out, Plan
from triplewire.ongoing.network.emitting import JOIN, LIFT, NEW, SAME, copied, slots_of, told, with_slot
from triplewire.ongoing.network.tables import slot_of, some

_TAB = np.uint8(9)


@compiled
def met_by_triples(plan: Plan, triples: Held, first: int, partials: Held, out: Out, cuts: Int64) -> int:
    """New triples, from a number on, held against what waits, until there is no more room; the first that was not."""
    for each in range(first, len(triples.rows)):
        rows, size, answers, said = out.counts[0], out.counts[1], out.counts[2], out.counts[3]
        found = partials.by_key[slot_of(partials.by_key, some(triples.rows[each].key))]
        number = found.head if found.key != 0 else -1
        while number >= 0:
            if _meets(triples, each, partials, number) and not _joined(
                plan, partials, number, triples, each, out, cuts
            ):
                out.counts[0], out.counts[1], out.counts[2], out.counts[3] = rows, size, answers, said
                return each
            number = partials.following[number]
    return len(triples.rows)


@inlined
def _meets(triples: Held, one: int, partials: Held, other: int) -> bool:
    """Is a triple of this kind for what waits there?"""
    kind, everywhere = triples.rows[one].kind, partials.rows[other].address < 0
    if (kind == SPREAD and not everywhere) or (kind == PROBE and everywhere):
        return False
    return partials.numbers[other] >= 0


@compiled
def met_by_partials(plan: Plan, partials: Held, first: int, triples: Held, out: Out, cuts: Int64) -> int:
    """The same for new partial results, held against triples."""
    for each in range(first, len(partials.rows)):
        rows, size, answers, said = out.counts[0], out.counts[1], out.counts[2], out.counts[3]
        if partials.numbers[each] < 0:
            continue
        found = triples.by_key[slot_of(triples.by_key, some(partials.rows[each].key))]
        number = found.head if found.key != 0 else -1
        while number >= 0:
            if not _joined(plan, partials, each, triples, number, out, cuts):
                out.counts[0], out.counts[1], out.counts[2], out.counts[3] = rows, size, answers, said
                return each
            number = triples.following[number]
    return len(partials.rows)


@compiled
def _joined(plan: Plan, partials: Held, one: int, triples: Held, other: int, out: Out, cuts: Int64) -> bool:
    """A partial result and a triple of the same key. False where there is no room for what they make."""
    partial, triple = partials.rows[one], triples.rows[other]
    node, base = partials.numbers[one], out.counts[1]
    oldest, newest = min(partial.oldest, triple.oldest), max(partial.newest, triple.newest)
    began, ended = min(partial.began, triple.began), max(partial.ended, triple.ended)
    record = plan.nodes[node]
    if newest - oldest >= record.span or ended - began >= record.within:
        return True
    if base + partial.length + triple.length + 3 > len(out.text):
        return False
    _cut(triples.text, triple.start, triple.length, cuts)
    count = slots_of(partials.text, partial.start, partial.length, out)
    if not _fits(plan, node, partials.text, partial.start, out, triples.text, cuts):
        return True
    end = copied(partials.text, partial.start, partial.start + partial.length, out.text, base)
    for place in range(3):
        if plan.roles[3 * node + place] in (NEW, LIFT):
            end = with_slot(out, base, end, count, triples.text, cuts[2 * place], cuts[2 * place + 1])
            count += 1
    return told(plan, out, node, base, end, oldest, newest, began, ended)


@compiled
def _cut(text: Bytes, start: int, length: int, cuts: Int64) -> None:
    """Where the three terms of a triple begin and end."""
    place, count = start, 0
    cuts[0] = start
    while count < 4:
        if text[place] == _TAB:
            cuts[count + 1], cuts[count + 2] = place, place + 1
            count += 2
        place += 1
    cuts[5] = start + length


@compiled
def _fits(plan: Plan, node: int, slots: Bytes, base: int, out: Out, text: Bytes, cuts: Int64) -> bool:
    """Does a triple fit to what was bound before? Keys only guess."""
    record = plan.nodes[node]
    if record.predicate_length >= 0 and not same_bytes(
        text, cuts[2], cuts[3], plan.pool, record.predicate_start, record.predicate_length
    ):
        return False
    for place in range(3):
        role, reference = plan.roles[3 * node + place], plan.references[3 * node + place]
        start, stop = cuts[2 * place], cuts[2 * place + 1]
        if role == JOIN:
            length = out.stops[reference] - out.starts[reference]
            if not same_bytes(text, start, stop, slots, base + out.starts[reference], length):
                return False
        elif role == SAME:
            length = cuts[2 * reference + 1] - cuts[2 * reference]
            if not same_bytes(text, start, stop, text, cuts[2 * reference], length):
                return False
    return True
