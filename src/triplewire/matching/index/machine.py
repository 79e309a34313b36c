"""The filter machine: evaluates the filters of a program on one solution, in four values, compiled.

A filter passes, fails, is an error, or is `UNKNOWN` to the machine: long numbers, times without a zone, escapes, and
literals whose comparison has more rules than it has. The evaluator decides about unknown ones.
"""

from __future__ import annotations

import numpy as np

from triplewire.kernels.arrays import Bytes
from triplewire.kernels.compiler import compiled, inlined, unfolded
from triplewire.kernels.words import same_bytes
from triplewire.matching.index.arrays import BatchArrays, IndexArrays, MatchScratch
from triplewire.matching.index.numbers import DECIDED, UNDECIDED, closing_quote, parse_instant, parse_number
from triplewire.matching.index.programs import REFLEXIVE, Opcode, SlotKind
from triplewire.matching.index.relations import find_name, relation_holds

FAIL, PASS, ERROR, UNKNOWN = 0, 1, 2, 3

# Kinds of constants.
OTHER, IRI, STRING, NUMBER, INSTANT = range(5)

_EQUAL, _NOT_EQUAL, _LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL, *_OTHERS = map(int, Opcode)
_PREFIX, _STR_PREFIX, _SUFFIX, _STR_SUFFIX, *_OTHERS = _OTHERS
_IS_IRI, _IS_BLANK, _IS_LITERAL, _LANG, _DATATYPE, _SAME, _TRUE, _FALSE, _AND, _OR, _NOT, _RELATED = _OTHERS
_REFLEXIVE = np.array(REFLEXIVE)
_PARAMETER = int(SlotKind.PARAMETER)
_QUOTE, _ANGLE, _CLOSE, _UNDERSCORE, _BACKSLASH, _AT, _DASH = 34, 60, 62, 95, 92, 64, 45


@compiled
def has_prefix(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Compare a prefix. UNKNOWN if either text has escapes."""
    for offset in range(length):
        if pool[first + offset] == _BACKSLASH:
            return UNKNOWN
    for place in range(start, min(stop, start + length)):
        if text[place] == _BACKSLASH:
            return UNKNOWN
        if text[place] != pool[first + place - start]:
            return FAIL
    return PASS if stop - start >= length else FAIL


@compiled
def has_suffix(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Compare a suffix. UNKNOWN if either text has escapes: one of them may begin before the suffix."""
    for offset in range(length):
        if pool[first + offset] == _BACKSLASH:
            return UNKNOWN
    if stop - start < length or not same_bytes(text, stop - length, stop, pool, first, length):
        return FAIL
    for place in range(start, stop):
        if text[place] == _BACKSLASH:
            return UNKNOWN
    return PASS


@inlined
def constant_index(index: IndexArrays, program: int, group: int, slot: int, name: int) -> int:
    """The index of the constant that a slot or an instruction names."""
    if slot == _PARAMETER:
        return index.groups[group].first_constant + name
    return index.programs[program].first_fixed + name


@compiled
def parse_term(text: Bytes, place: int, timely: int, scratch: MatchScratch) -> tuple[int, float]:
    """The number or the instant of a term, parsed once for each term."""
    term = scratch.terms[place]
    if timely:
        if term.timely < 0:
            state, value = parse_instant(text, term.start, term.stop)
            term.timely = state
            term.moment = value
        return term.timely, term.moment
    if term.numeric < 0:
        state, value = parse_number(text, term.start, term.stop)
        term.numeric = state
        term.number = value
    return term.numeric, term.number


@inlined
def compare_values(op: int, left: float, right: float) -> bool:
    if op == _GREATER:
        return left > right
    if op == _GREATER_EQUAL:
        return left >= right
    if op == _LESS:
        return left < right
    if op == _LESS_EQUAL:
        return left <= right
    return (left == right) == (op == _EQUAL)


@unfolded
def run_filters(events: BatchArrays, program: int, group: int, index: IndexArrays, scratch: MatchScratch) -> int:
    """Evaluate the filters of a program on the current solution."""
    first = index.programs[program].first_step
    height = 0
    stack = scratch.stack
    for step in range(first, first + index.programs[program].steps):
        op = index.steps[step].op
        if op == _NOT:
            value = stack[height - 1]
            stack[height - 1] = (PASS if value == FAIL else FAIL) if value < ERROR else value
        elif op in (_AND, _OR):
            height -= 1
            stack[height - 1] = _combine(op, stack[height - 1], stack[height])
        else:
            stack[height] = _run_test(op, step, program, group, events, index, scratch)
            height += 1
    return stack[0] if height > 0 else PASS


@compiled
def _combine(op: int, one: int, other: int) -> int:
    decisive = FAIL if op == _AND else PASS
    if one == decisive or other == decisive:
        return decisive
    return max(one, other) if max(one, other) >= ERROR else one


@compiled
def _run_test(
    op: int, step: int, program: int, group: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch
) -> int:
    if op in (_TRUE, _FALSE):
        return PASS if op == _TRUE else FAIL
    place = scratch.variables[index.steps[step].variable].term
    text, start, stop = events.text, scratch.terms[place].start, scratch.terms[place].stop
    byte = text[start]
    iri = byte == _ANGLE and text[start + 1] != _ANGLE
    if op == _IS_IRI:
        return PASS if iri else FAIL
    if op == _IS_BLANK:
        return PASS if byte == _UNDERSCORE else FAIL
    if op == _IS_LITERAL:
        return PASS if byte == _QUOTE else FAIL
    constant = constant_index(index, program, group, index.steps[step].slot, index.steps[step].number)
    first, length = index.constants[constant].start, index.constants[constant].length
    if op >= _RELATED:
        return _test_relation(op - _RELATED, place, constant, iri, events, index, scratch)
    if op == _SAME:
        return PASS if same_bytes(text, start, stop, index.pool, first, length) else FAIL
    if op == _LANG:
        return _test_language(text, start, stop, index.pool, first, length)
    if op == _DATATYPE:
        return _test_datatype(text, start, stop, index.pool, first, length)
    if op in (_PREFIX, _STR_PREFIX, _SUFFIX, _STR_SUFFIX):
        plain = op in (_PREFIX, _SUFFIX)
        if not (byte == _QUOTE or (iri and not plain)) or (plain and text[stop - 1] == _CLOSE):
            return UNKNOWN
        end = body_end(text, start, stop)
        if op in (_PREFIX, _STR_PREFIX):
            return has_prefix(text, start + 1, end, index.pool, first + 1, length - 2)
        return has_suffix(text, start + 1, end, index.pool, first + 1, length - 2)
    return _test_comparison(op, place, constant, text, index, scratch, iri)


@compiled
def _test_relation(
    relation: int, place: int, constant: int, iri: bool, events: BatchArrays, index: IndexArrays, scratch: MatchScratch
) -> int:
    """Test an ontology relation. It is an error for terms that are not IRIs."""
    if not iri:
        return ERROR
    term, other = scratch.terms[place], index.constants[constant]
    if _REFLEXIVE[relation] and same_bytes(events.text, term.start, term.stop, index.pool, other.start, other.length):
        return PASS
    name = find_name(index.relations, term.hash, events.text, term.start, term.stop)
    if name < 0:
        return FAIL
    end = other.start + other.length
    return PASS if relation_holds(index.relations, relation, name, index.pool, other.start, end, other.hash) else FAIL


@compiled
def body_end(text: Bytes, start: int, stop: int) -> int:
    """The closing quotation mark of a literal; of other terms the last character."""
    place = stop - 1
    while text[start] == _QUOTE and place > start and text[place] != _QUOTE:
        place -= 1
    return place


@compiled
def _test_language(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Test the language tag of a literal, case-sensitively."""
    if text[start] != _QUOTE:
        return ERROR if text[start] == _ANGLE and text[start + 1] != _ANGLE else UNKNOWN
    end = body_end(text, start, stop)
    if end == stop - 1 or text[end + 1] != _AT:
        return PASS if length == 2 else FAIL
    for place in range(end + 2, stop - 1):
        if text[place] == _DASH and text[place + 1] == _DASH:
            return UNKNOWN  # a direction stands behind the tag
    return PASS if same_bytes(text, end + 2, stop, pool, first + 1, length - 2) else FAIL


@compiled
def _test_datatype(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Test the datatype of a literal. Plain strings do not carry theirs."""
    if text[start] != _QUOTE:
        return ERROR if text[start] == _ANGLE and text[start + 1] != _ANGLE else UNKNOWN
    end = body_end(text, start, stop)
    if end == stop - 1 or text[end + 1] == _AT:
        return UNKNOWN
    return PASS if same_bytes(text, end + 3, stop, pool, first, length) else FAIL


@compiled
def _test_comparison(
    op: int, place: int, constant: int, text: Bytes, index: IndexArrays, scratch: MatchScratch, iri: bool
) -> int:
    kind = index.constants[constant].kind
    start, stop = scratch.terms[place].start, scratch.terms[place].stop
    if kind in (NUMBER, INSTANT):
        state, value = parse_term(text, place, 1 if kind == INSTANT else 0, scratch)
        if state == DECIDED:
            return PASS if compare_values(op, value, index.constants[constant].value) else FAIL
        if state == UNDECIDED:
            return UNKNOWN
        return _compare_unlike(op, text, start, stop, iri)
    equal = same_bytes(text, start, stop, index.pool, index.constants[constant].start, index.constants[constant].length)
    if op in (_EQUAL, _NOT_EQUAL):
        if equal:
            return PASS if op == _EQUAL else FAIL
        plain = kind == STRING and text[start] == _QUOTE and text[stop - 1] == _QUOTE
        if iri or kind == IRI or plain:
            return FAIL if op == _EQUAL else PASS
    return UNKNOWN


@compiled
def _compare_unlike(op: int, text: Bytes, start: int, stop: int, iri: bool) -> int:
    """Compare a number or an instant with a term that is neither. Literals are UNKNOWN here."""
    if not iri:
        return UNKNOWN
    if op in (_EQUAL, _NOT_EQUAL):
        return FAIL if op == _EQUAL else PASS
    return ERROR


@unfolded
def test_threshold(
    events: BatchArrays, program: int, group: int, index: IndexArrays, scratch: MatchScratch
) -> tuple[int, float]:
    """Test the current solution against the easiest threshold of a group. Return its value, too."""
    variable = index.programs[program].threshold
    if variable < 0:
        return PASS, 0.0
    place = scratch.variables[variable].term
    state, value = parse_term(events.text, place, index.programs[program].timely, scratch)
    if state == DECIDED:
        easiest = index.groups[group].bound
        return (PASS if compare_values(index.programs[program].direction, value, easiest) else FAIL), value
    if state == UNDECIDED:
        return UNKNOWN, 0.0
    start, stop = scratch.terms[place].start, scratch.terms[place].stop
    literal = events.text[start] == _QUOTE
    typed = closing_quote(events.text, start, stop) >= 0
    return (UNKNOWN if literal and typed else FAIL), 0.0


@compiled
def passes_more(op: int, value: float, other: float) -> bool:
    """Does one value pass more thresholds than the other?"""
    return value > other if op in (_GREATER, _GREATER_EQUAL) else value < other
