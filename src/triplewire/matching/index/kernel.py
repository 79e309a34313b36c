"""The match kernel: one pass over a batch of events, compiled.

Each event is split into terms and hashed; its access keys are looked up, after a Bloom filter has ruled out most of
them; a group that is found this way, and whose signature the event covers, is tried by backtracking over the event's
few quads. Only kinds of key that are in use are made.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels import words
from triplewire.kernels.arrays import Bytes, Records, UInt64
from triplewire.kernels.compiler import compiled, inlined, unfolded
from triplewire.matching.index import keys
from triplewire.matching.index.arrays import BatchArrays, IndexArrays, MatchBuffer, MatchScratch
from triplewire.matching.index.backtracking import HEADER_COUNT, solve_group
from triplewire.matching.index.machine import UNKNOWN, body_end, parse_term
from triplewire.matching.index.numbers import DECIDED, UNDECIDED
from triplewire.matching.index.programs import REFLEXIVE
from triplewire.matching.index.relations import find_name, relation_span

_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TABS, _LINES = np.uint64(0x0909090909090909), np.uint64(0x0A0A0A0A0A0A0A0A)
_HIGH, _EIGHT = np.uint64(0x80), np.uint64(8)


@unfolded
def split_terms(text: Bytes, start: int, stop: int, terms: Records) -> int:
    """Split a text into terms, each with its hash, in one pass over its words. Return their number, or -1 if there
    is no room."""
    count, begin, place, found = 0, start, start, words.SEED
    while begin < stop:
        word = words.read_word(text, place)
        marks = _find_separators(word)
        if stop - place < words.WIDTH:
            # The end of the text also ends a term.
            marks |= _HIGH << (np.uint64(stop - place) * _EIGHT)
        if marks == 0:
            found = words.mix_word(found, word)
            place += words.WIDTH
            continue
        length = words.first_marked_byte(marks)
        if length > 0:
            found = words.mix_word(found, words.low_bytes(word, length))
        if count == len(terms):
            return -1
        end = place + length
        term = terms[count]
        term.hash = words.finish_hash(found, end - begin)
        term.start = begin
        term.stop = end
        term.numeric = -1
        term.timely = -1
        count += 1
        begin, place, found = end + 1, end + 1, words.SEED
    return count


@inlined
def _find_separators(word: np.uint64) -> np.uint64:
    """The highest bit of each byte that is a tab or a newline. Bits above the first of them may be wrong."""
    tabs, lines = word ^ _TABS, word ^ _LINES
    return (((tabs - _ONES) & ~tabs) | ((lines - _ONES) & ~lines)) & _HIGHS


_REFLEXIVE = np.array(REFLEXIVE)


@unfolded
def probe_event(
    event: int, quads: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch
) -> tuple[int, np.uint64]:
    """Find the access keys of an event under which there may be groups. Return their number, which may exceed the room
    for them, and the signature of the event.

    Most keys of most quads have no group. To tell that quickly, only kinds that are in use are made, and a Bloom filter
    is asked before the table.
    """
    count, signature = 0, np.uint64(0)
    uses, terms, halves = index.uses, scratch.terms, scratch.halves
    for quad in range(quads):
        subject, predicate, object_ = terms[3 * quad].hash, terms[3 * quad + 1].hash, terms[3 * quad + 2].hash
        object_key = keys.key_of(keys.PREDICATE_OBJECT, predicate, object_)
        subject_key = keys.key_of(keys.SUBJECT_PREDICATE, subject, predicate)
        predicate_key = keys.key_of(keys.PREDICATE, predicate, predicate)
        halves[2 * quad + keys.PREDICATE_OBJECT] = object_key
        halves[2 * quad + keys.SUBJECT_PREDICATE] = subject_key
        signature |= keys.bit_of(object_key) | keys.bit_of(subject_key) | keys.bit_of(predicate_key)
        if uses[keys.PREDICATE_OBJECT]:
            count = _add_probe(object_key, quad, index, scratch, count)
        if uses[keys.SUBJECT_PREDICATE]:
            count = _add_probe(subject_key, quad, index, scratch, count)
        if uses[keys.PREDICATE]:
            count = _add_probe(predicate_key, quad, index, scratch, count)
        if uses[keys.OBJECT]:
            count = _add_probe(keys.key_of(keys.OBJECT, object_, object_), quad, index, scratch, count)
        if uses[keys.SUBJECT]:
            count = _add_probe(keys.key_of(keys.SUBJECT, subject, subject), quad, index, scratch, count)
        if uses[keys.EVERYTHING]:
            count = _add_probe(keys.key_of(keys.EVERYTHING, np.uint64(0), np.uint64(0)), quad, index, scratch, count)
        if uses[keys.HAS_PREFIX] and keys.may_contain(index, keys.key_of(keys.HAS_PREFIX, predicate, predicate)):
            count = _probe_prefixes(quad, events, index, scratch, count)
        if uses[keys.HAS_SUFFIX] and keys.may_contain(index, keys.key_of(keys.HAS_SUFFIX, predicate, predicate)):
            count = _probe_suffixes(quad, events, index, scratch, count)
        if uses[keys.HAS_VALUE] and keys.may_contain(index, keys.key_of(keys.HAS_VALUE, predicate, predicate)):
            count = _probe_value(quad, events, index, scratch, count)
        if uses[keys.HAS_RELATION]:
            count = _probe_relations(quad, events, index, scratch, count)
    if uses[keys.HEADER]:
        count = _probe_headers(event, events, index, scratch, count)
    if uses[keys.FIRST]:
        count = _probe_pairs(quads, index, scratch, count)
    return count, signature


@inlined
def _add_probe(key: np.uint64, quad: int, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    """Add a probe if the table may have its key. Probes without room are counted, too."""
    if not keys.may_contain(index, key):
        return count
    if count < len(scratch.probes):
        scratch.probes[count].key = key
        scratch.probes[count].quad = quad
    return count + 1


@compiled
def _probe_prefixes(quad: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    object_, predicate = scratch.terms[3 * quad + 2], scratch.terms[3 * quad + 1].hash
    first = object_.start + 1
    for length in range(1, min(keys.LONGEST_AFFIX + 1, object_.stop - first)):
        if index.uses[keys.PREFIX_LENGTHS + length]:
            beginning = words.hash_bytes(events.text, first, first + length)
            count = _add_probe(keys.key_of(keys.PREFIX, predicate, beginning), quad, index, scratch, count)
    return count


@compiled
def _probe_suffixes(quad: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    object_, predicate = scratch.terms[3 * quad + 2], scratch.terms[3 * quad + 1].hash
    end = body_end(events.text, object_.start, object_.stop)
    for length in range(1, min(keys.LONGEST_AFFIX + 1, end - object_.start)):
        if index.uses[keys.SUFFIX_LENGTHS + length]:
            ending = words.hash_bytes(events.text, end - length, end)
            count = _add_probe(keys.key_of(keys.SUFFIX, predicate, ending), quad, index, scratch, count)
    return count


@compiled
def _probe_value(quad: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    predicate = scratch.terms[3 * quad + 1].hash
    state, value = parse_term(events.text, 3 * quad + 2, 0, scratch)
    if state == DECIDED:
        return _add_probe(keys.value_key(predicate, value), quad, index, scratch, count)
    if state == UNDECIDED:
        return _add_probe(keys.key_of(keys.VALUE, predicate, keys.UNREAD_NUMBER), quad, index, scratch, count)
    return count


@compiled
def _probe_relations(quad: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    object_, predicate = scratch.terms[3 * quad + 2], scratch.terms[3 * quad + 1].hash
    name = -2
    for relation in range(len(REFLEXIVE)):
        kind = keys.RELATED + relation
        if index.uses[kind] == 0 or not keys.may_contain(
            index, keys.key_of(keys.HAS_RELATION, predicate, np.uint64(kind))
        ):
            continue
        if name == -2:
            name = find_name(index.relations, object_.hash, events.text, object_.start, object_.stop)
        if _REFLEXIVE[relation]:
            count = _add_probe(keys.key_of(kind, predicate, object_.hash), quad, index, scratch, count)
        if name >= 0:
            begin, end = relation_span(index.relations, relation, name)
            for place in range(begin, end):
                other = index.relations.names[index.relations.others[place]].hash
                count = _add_probe(keys.key_of(kind, predicate, other), quad, index, scratch, count)
    return count


@compiled
def _probe_headers(event: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    for header in range(-HEADER_COUNT, 0):
        literal = events.header[event * HEADER_COUNT - header - 1]
        named = events.literal_hash[literal] if literal >= 0 else np.uint64(0)
        count = _add_probe(keys.key_of(keys.HEADER, np.uint64(-header), named), header, index, scratch, count)
    return count


@compiled
def _probe_pairs(quads: int, index: IndexArrays, scratch: MatchScratch, count: int) -> int:
    """Probe keys of two quads; if there are many quads, keys of first halves alone."""
    halves = scratch.halves
    for one in range(2 * quads):
        key = keys.key_of(keys.FIRST, halves[one], halves[one])
        if not keys.may_contain(index, key):
            continue
        if quads > keys.PAIRED_QUADS:
            count = _add_probe(key, one // 2, index, scratch, count)
            continue
        for other in range(2 * quads):
            if other == one or not keys.may_contain(index, keys.key_of(keys.SECOND, halves[other], halves[other])):
                continue
            both = keys.key_of(keys.pair_kind(one & 1, other & 1), halves[one], halves[other])
            if not _occurs_before(halves, other):
                count = _add_probe(both, one // 2, index, scratch, count)
    return count


@compiled
def _occurs_before(halves: UInt64, place: int) -> bool:
    """Does an earlier quad have the same half? Its groups are tried there."""
    for other in range(place & 1, place, 2):  # noqa: SIM110 (numba knows no generators)
        if halves[other] == halves[place]:
            return True
    return False


@compiled
def match_events(
    events: BatchArrays, first: int, index: IndexArrays, scratch: MatchScratch, found: MatchBuffer
) -> tuple[int, int, int]:
    """Match events from the given one on, while there is room for terms, keys and results. Return the next event,
    the number of rows, and the number of pairs of event and group that are left to the evaluator."""
    rows, slow = 0, 0
    for event in range(first, len(events.start) - 1):
        before, slow_before = rows, slow
        terms = split_terms(events.text, events.start[event], events.start[event + 1], scratch.terms)
        if terms < 0:
            return event, rows, slow
        quads = terms // 3
        count, signature = probe_event(event, quads, events, index, scratch)
        if count > len(scratch.probes):
            return event, rows, slow
        if event % keys.SAMPLE_EVERY == 0:
            keys.count_keys(quads, index, scratch)
        for probe in range(count):
            rows, slow = _try_groups(probe, signature, event, quads, events, index, scratch, found, rows, slow)
            if rows < 0:
                return event, before, slow_before
    return len(events.start) - 1, rows, slow


@unfolded
def _try_groups(
    probe: int,
    signature: np.uint64,
    event: int,
    quads: int,
    events: BatchArrays,
    index: IndexArrays,
    scratch: MatchScratch,
    found: MatchBuffer,
    rows: int,
    slow: int,
) -> tuple[int, int]:
    """Try the groups of an access key of a quad or a header. Return the numbers of rows, -1 if there is no room, and
    of pairs."""
    quad = scratch.probes[probe].quad
    posting = index.keys[keys.find_key(index, scratch.probes[probe].key)].head
    while posting >= 0:
        group = index.postings[posting].group
        # A group that was added after the batch had begun is for the next batch.
        there = group < len(scratch.seen) and index.groups[group].members > 0
        if there and index.groups[group].signature & ~signature == 0:
            access = index.postings[posting].row
            rows, state = solve_group(group, access, quad, event, quads, events, index, scratch, found, rows)
            if rows < 0:
                return -1, slow
            if state == UNKNOWN:
                if slow == len(found.slow):
                    return -1, slow
                found.slow[slow].event = event
                found.slow[slow].group = group
                slow += 1
        posting = index.postings[posting].following
    return rows, slow
