"""Kernels of the join network: compiled code that routes triples, joins them with partial results, and emits rows.

Every kernel returns early when its output buffers are full and says how far it came; the caller drains them and calls
it again. Hash keys only preselect: terms are compared before anything is emitted.
"""

from __future__ import annotations

import numpy as np

from triplewire.continuous.join_network.join_order import TermRole
from triplewire.continuous.join_network.layout import (
    ANSWER,
    PARTIAL,
    PROBE,
    ROW,
    SLOTS,
    SPREAD,
    TRIPLE,
    NetworkEvents,
    NetworkPlan,
    OutputBuffers,
    StoredRows,
)
from triplewire.continuous.join_network.store import contains_key, find_slot, nonzero_key
from triplewire.kernels.arrays import Bytes, Int64
from triplewire.kernels.compiler import compiled, inlined
from triplewire.kernels.words import hash_bytes, hash_pair, same_bytes

JOIN, SAME, NEW, LIFT = int(TermRole.JOIN), int(TermRole.SAME), int(TermRole.NEW), int(TermRole.LIFT)
ADDRESSES = 20_000
"""Addresses that hashes are spread over, as many as the paper has nodes; a bucket has many of them."""

LIFTED = np.uint64(7)
"""The salt of hashes of constants."""

_TAB, _LINE = np.uint8(9), np.uint8(10)
_TURN = np.uint64(17)
_ADDRESSES = np.uint64(ADDRESSES)


@inlined
def row_address(plan: NetworkPlan, key: np.uint64, salt: np.uint64) -> int:
    """Return the address of a row: that of its values, or that of its pattern."""
    chosen = key if plan.spread[0] else salt
    return (chosen >> _TURN) % _ADDRESSES  # type: ignore[return-value]


@inlined
def copy_bytes(source: Bytes, start: int, stop: int, target: Bytes, place: int) -> int:
    """Copy bytes; return where they end."""
    for at in range(start, stop):
        target[place + at - start] = source[at]
    return place + stop - start


@compiled
def find_slots(text: Bytes, start: int, length: int, out: OutputBuffers) -> int:
    """Find the slots in a text; return how many there are."""
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
def append_slot(out: OutputBuffers, base: int, end: int, count: int, source: Bytes, start: int, stop: int) -> int:
    """Append a slot to the text that begins at `base`; return where that ends."""
    if count > 0:
        out.text[end] = _TAB
        end += 1
    out.starts[count] = end - base
    end = copy_bytes(source, start, stop, out.text, end)
    out.stops[count] = end - base
    return end


@compiled
def emit_matches(
    plan: NetworkPlan,
    out: OutputBuffers,
    node: int,
    base: int,
    end: int,
    oldest: int,
    newest: int,
    began: int,
    ended: int,
) -> bool:
    """Emit a match of a node, whose slots are the text from `base` to `end` of the row buffer: as partial results for
    its children, and as answers. Returns False if the buffers are full."""
    record = plan.nodes[node]
    if newest - oldest >= record.span or ended - began >= record.within:
        return True
    if record.lifts >= 0 and not _emit_answers(plan, out, node, base, end, oldest, newest, ended - began):
        return False
    length, place = end - base, base
    for each in range(record.first_child, record.first_child + record.children):
        count = out.counts[0]
        if count == len(out.rows) or place + length > len(out.text):
            return False
        if place != base:
            copy_bytes(out.text, base, end, out.text, place)
        child = plan.children[each]
        row, salt = out.rows[count], plan.nodes[child].salt
        key = _join_key(plan, out, child, base)
        row.key, row.id, row.kind = key, plan.nodes[child].id, PARTIAL
        row.oldest, row.newest, row.began, row.ended = oldest, newest, began, ended
        row.start, row.length = place, length
        row.address = -1 if contains_key(plan.heavy, nonzero_key(key)) else row_address(plan, key, salt)
        place += length
        out.counts[0] = count + 1
        out.counts[1] = place
    return True


@compiled
def _join_key(plan: NetworkPlan, out: OutputBuffers, node: int, base: int) -> np.uint64:
    """Return the key by which triples and the partial results that wait at a node meet."""
    key = plan.nodes[node].salt
    for place in range(3):
        if plan.roles[3 * node + place] == JOIN:
            slot = plan.references[3 * node + place]
            found = hash_bytes(out.text, base + out.starts[slot], base + out.stops[slot])
            key = hash_pair(key, found, np.uint64(place))
    return key


@compiled
def _emit_answers(
    plan: NetworkPlan, out: OutputBuffers, node: int, base: int, end: int, oldest: int, newest: int, time: int
) -> bool:
    """Emit an answer for each group whose constants are in the slots. Returns False if the buffers are full."""
    record = plan.nodes[node]
    key = record.id
    for each in range(record.first_lift, record.first_lift + record.lifts):
        slot = plan.lifts[each]
        key = hash_pair(key, hash_bytes(out.text, base + out.starts[slot], base + out.stops[slot]), LIFTED)
    found = plan.by_constants[find_slot(plan.by_constants, nonzero_key(key))]
    number = found.head if found.key != 0 else -1
    while number >= 0:
        group = plan.groups[number]
        fits = group.alive != 0 and group.node == node and newest - oldest < group.span and time < group.within
        if fits and _constants_match(plan, out, node, base, number):
            count, place = out.counts[2], out.counts[3]
            if count == len(out.answers) or place + end - base > len(out.answer_text):
                return False
            answer = out.answers[count]
            answer.group, answer.oldest, answer.newest = number, oldest, newest
            answer.start, answer.length = place, end - base
            out.counts[3] = copy_bytes(out.text, base, end, out.answer_text, place)
            out.counts[2] = count + 1
        number = group.following
    return True


@compiled
def _constants_match(plan: NetworkPlan, out: OutputBuffers, node: int, base: int, number: int) -> bool:
    """Compare the constants of a group with the slots, since hashes only preselect."""
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


def allocate_buffers(rows: int, text: int, answers: int, answer_bytes: int, ports: int = 0) -> OutputBuffers:
    """Return buffers for rows and answers and the bytes of their texts, with a counter for each port."""
    return OutputBuffers(
        rows=np.zeros(rows, ROW),
        text=np.zeros(text, np.uint8),
        answers=np.zeros(answers, ANSWER),
        answer_text=np.zeros(answer_bytes, np.uint8),
        counts=np.zeros(4, np.int64),
        seen=np.zeros(ports, np.int64),
        starts=np.zeros(SLOTS + 3, np.int32),
        stops=np.zeros(SLOTS + 3, np.int32),
    )


@compiled
def route_events(plan: NetworkPlan, entries: NetworkEvents, first: int, out: OutputBuffers) -> int:
    """Route events from an index on until the buffers are full; return the index of the first that was not routed.

    Each port that takes a triple sends it to the address where partial results may wait for it. A triple that begins a
    chain is a partial result at once. Triples that no query can use go nowhere.
    """
    for each in range(first, len(entries.position)):
        rows, size, answers, said = out.counts[0], out.counts[1], out.counts[2], out.counts[3]
        if not _route_event(plan, entries, each, out):
            out.counts[0], out.counts[1], out.counts[2], out.counts[3] = rows, size, answers, said
            return each
    return len(entries.position)


@compiled
def _route_event(plan: NetworkPlan, entries: NetworkEvents, event: int, out: OutputBuffers) -> bool:
    text, place, stop = entries.text, entries.start[event], entries.start[event + 1]
    while place < stop:
        one = _term_end(text, place, stop)
        two = _term_end(text, one + 1, stop)
        three = _term_end(text, two + 1, stop)
        if not _route_triple(plan, entries, event, out, place, one, two, three):
            return False
        place = three + 1
    return True


@inlined
def _term_end(text: Bytes, place: int, stop: int) -> int:
    """Return where the term ends that begins at `place`."""
    while place < stop and text[place] != _TAB and text[place] != _LINE:
        place += 1
    return place


@compiled
def _route_triple(
    plan: NetworkPlan,
    entries: NetworkEvents,
    event: int,
    out: OutputBuffers,
    start: int,
    one: int,
    two: int,
    three: int,
) -> bool:
    """Route the triple between `start` and `three`, with tabs at `one` and `two`."""
    text = entries.text
    predicate = hash_bytes(text, one + 1, two)
    found = plan.by_predicate[find_slot(plan.by_predicate, nonzero_key(predicate))]
    if found.key == 0 and plan.anywhere[1] == 0:
        return True
    hashes = (hash_bytes(text, start, one), predicate, hash_bytes(text, two + 1, three))
    if found.key != 0:
        for port in range(found.head, found.head + found.count):
            record = plan.ports[port]
            named = same_bytes(text, one + 1, two, plan.pool, record.predicate_start, record.predicate_length)
            if named and not _enter_port(plan, entries, event, out, port, hashes, start, one, two, three):
                return False
    for port in range(plan.anywhere[0], plan.anywhere[0] + plan.anywhere[1]):
        if not _enter_port(plan, entries, event, out, port, hashes, start, one, two, three):
            return False
    return True


@compiled
def _enter_port(
    plan: NetworkPlan,
    entries: NetworkEvents,
    event: int,
    out: OutputBuffers,
    port: int,
    hashes: tuple[np.uint64, np.uint64, np.uint64],
    start: int,
    one: int,
    two: int,
    three: int,
) -> bool:
    """Route a triple by one port."""
    record = plan.ports[port]
    if not entries.scopes[event, record.scope]:
        return True
    out.seen[port] += 1
    if not _is_wanted(plan, port, hashes):
        return True
    if record.roots >= 0:
        for each in range(record.first_root, record.first_root + record.roots):
            if not _begin_chain(plan, entries, event, out, plan.roots[each], start, one, two, three):
                return False
        return True
    key = record.id
    for place in range(3):
        if record.joins >> place & 1:
            key = hash_pair(key, hashes[place], np.uint64(place))
    home = row_address(plan, key, record.id)
    if not contains_key(plan.heavy, nonzero_key(key)):
        return _send_triple(entries, event, out, key, record.id, home, TRIPLE, start, three)
    whole = hash_pair(hash_pair(hashes[0], hashes[1], key), hashes[2], key)
    away = row_address(plan, whole, whole)
    return _send_triple(entries, event, out, key, record.id, away, SPREAD, start, three) and _send_triple(
        entries, event, out, key, record.id, home, PROBE, start, three
    )


@compiled
def _send_triple(
    entries: NetworkEvents,
    event: int,
    out: OutputBuffers,
    key: np.uint64,
    port: np.uint64,
    address: int,
    kind: int,
    start: int,
    stop: int,
) -> bool:
    """Emit a triple for an address. Returns False if the buffers are full."""
    count, base = out.counts[0], out.counts[1]
    if count == len(out.rows) or base + stop - start > len(out.text):
        return False
    row = out.rows[count]
    row.key, row.id, row.kind, row.address = key, port, kind, address
    row.oldest = row.newest = entries.position[event]
    row.began = row.ended = entries.time[event]
    row.start, row.length = base, stop - start
    out.counts[0] = count + 1
    out.counts[1] = copy_bytes(entries.text, start, stop, out.text, base)
    return True


@inlined
def _is_wanted(plan: NetworkPlan, port: int, hashes: tuple[np.uint64, np.uint64, np.uint64]) -> bool:
    """Return whether some query has the constants of a triple."""
    record = plan.ports[port]
    if record.lifts == 0:
        return True
    key = record.id
    for place in range(3):
        if record.lifts >> place & 1:
            key = hash_pair(key, hashes[place], np.uint64(place))
    return contains_key(plan.wanted, nonzero_key(key))


@compiled
def _begin_chain(
    plan: NetworkPlan,
    entries: NetworkEvents,
    event: int,
    out: OutputBuffers,
    node: int,
    start: int,
    one: int,
    two: int,
    three: int,
) -> bool:
    text = entries.text
    begins, ends = (start, one + 1, two + 1), (one, two, three)
    base = out.counts[1]
    if base + three - start + 3 > len(out.text):
        return False
    end, count = base, 0
    for place in range(3):
        role, reference = plan.roles[3 * node + place], plan.references[3 * node + place]
        if role == SAME:
            length = ends[reference] - begins[reference]
            if not same_bytes(text, begins[place], ends[place], text, begins[reference], length):
                return True
        elif role in (NEW, LIFT):
            end = append_slot(out, base, end, count, text, begins[place], ends[place])
            count += 1
    at, time = entries.position[event], entries.time[event]
    return emit_matches(plan, out, node, base, end, at, at, time, time)


@compiled
def join_triples(
    plan: NetworkPlan, triples: StoredRows, first: int, partials: StoredRows, out: OutputBuffers, cuts: Int64
) -> int:
    """Join new triples, from an index on, with the partial results that wait, until the buffers are full; return the
    index of the first that was not joined."""
    for each in range(first, len(triples.rows)):
        rows, size, answers, said = out.counts[0], out.counts[1], out.counts[2], out.counts[3]
        found = partials.by_key[find_slot(partials.by_key, nonzero_key(triples.rows[each].key))]
        number = found.head if found.key != 0 else -1
        while number >= 0:
            if _may_meet(triples, each, partials, number) and not _join_pair(
                plan, partials, number, triples, each, out, cuts
            ):
                out.counts[0], out.counts[1], out.counts[2], out.counts[3] = rows, size, answers, said
                return each
            number = partials.following[number]
    return len(triples.rows)


@inlined
def _may_meet(triples: StoredRows, one: int, partials: StoredRows, other: int) -> bool:
    """Is a triple of this kind for what waits there?"""
    kind, everywhere = triples.rows[one].kind, partials.rows[other].address < 0
    if (kind == SPREAD and not everywhere) or (kind == PROBE and everywhere):
        return False
    return partials.numbers[other] >= 0


@compiled
def join_partials(
    plan: NetworkPlan, partials: StoredRows, first: int, triples: StoredRows, out: OutputBuffers, cuts: Int64
) -> int:
    """The same for new partial results, held against triples."""
    for each in range(first, len(partials.rows)):
        rows, size, answers, said = out.counts[0], out.counts[1], out.counts[2], out.counts[3]
        if partials.numbers[each] < 0:
            continue
        found = triples.by_key[find_slot(triples.by_key, nonzero_key(partials.rows[each].key))]
        number = found.head if found.key != 0 else -1
        while number >= 0:
            if not _join_pair(plan, partials, each, triples, number, out, cuts):
                out.counts[0], out.counts[1], out.counts[2], out.counts[3] = rows, size, answers, said
                return each
            number = triples.following[number]
    return len(partials.rows)


@compiled
def _join_pair(
    plan: NetworkPlan, partials: StoredRows, one: int, triples: StoredRows, other: int, out: OutputBuffers, cuts: Int64
) -> bool:
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
    _split_triple(triples.text, triple.start, triple.length, cuts)
    count = find_slots(partials.text, partial.start, partial.length, out)
    if not _triple_fits(plan, node, partials.text, partial.start, out, triples.text, cuts):
        return True
    end = copy_bytes(partials.text, partial.start, partial.start + partial.length, out.text, base)
    for place in range(3):
        if plan.roles[3 * node + place] in (NEW, LIFT):
            end = append_slot(out, base, end, count, triples.text, cuts[2 * place], cuts[2 * place + 1])
            count += 1
    return emit_matches(plan, out, node, base, end, oldest, newest, began, ended)


@compiled
def _split_triple(text: Bytes, start: int, length: int, cuts: Int64) -> None:
    """Find where the three terms of a triple begin and end."""
    place, count = start, 0
    cuts[0] = start
    while count < 4:
        if text[place] == _TAB:
            cuts[count + 1], cuts[count + 2] = place, place + 1
            count += 2
        place += 1
    cuts[5] = start + length


@compiled
def _triple_fits(
    plan: NetworkPlan, node: int, slots: Bytes, base: int, out: OutputBuffers, text: Bytes, cuts: Int64
) -> bool:
    """Compare a triple with the slots that were bound before, since keys only preselect."""
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
