"""The machine: filters of a program on one solution, in four values.

What holds, what does not, what is an error, and what cannot be told here: long numbers, times without a zone, escapes,
and literals whose comparison has more rules than this knows.
"""

from __future__ import annotations

import numpy as np

from triplewire.matching.index.arrays import Events, Index, Scratch
from triplewire.matching.index.numbers import DECIDED, UNDECIDED, closing, moment, number
from triplewire.matching.index.programs import Op, Slot
from triplewire.matching.index.relations import REFLEXIVE, holds, number_of
from triplewire.native.arrays import Bytes
from triplewire.native.functions import compiled, inlined, unfolded
from triplewire.native.words import same

FAIL, PASS, ERROR, UNKNOWN = 0, 1, 2, 3

# What a constant is, to the machine.
OTHER, IRI, STRING, NUMBER, MOMENT = range(5)

_EQUAL, _NOT_EQUAL, _LESS, _LESS_EQUAL, _GREATER = (
    int(Op.EQUAL),
    int(Op.NOT_EQUAL),
    int(Op.LESS),
    int(Op.LESS_EQUAL),
    int(Op.GREATER),
)
_GREATER_EQUAL, _PREFIX, _STR_PREFIX = int(Op.GREATER_EQUAL), int(Op.PREFIX), int(Op.STR_PREFIX)
_IS_IRI, _IS_BLANK, _IS_LITERAL = int(Op.IS_IRI), int(Op.IS_BLANK), int(Op.IS_LITERAL)
_LANG, _DATATYPE, _SAME = int(Op.LANG), int(Op.DATATYPE), int(Op.SAME)
_TRUE, _FALSE, _AND, _OR, _NOT = int(Op.TRUE), int(Op.FALSE), int(Op.AND), int(Op.OR), int(Op.NOT)
_RELATED = int(Op.RELATED)
_REFLEXIVE = np.array(REFLEXIVE)
_PARAMETER = int(Slot.PARAMETER)
_QUOTE, _ANGLE, _CLOSE, _UNDERSCORE, _BACKSLASH, _AT, _DASH = 34, 60, 62, 95, 92, 64, 45


@compiled
def begins(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Do the bytes begin like those? Not told where either has escapes."""
    for offset in range(length):
        if pool[first + offset] == _BACKSLASH:
            return UNKNOWN
    for place in range(start, min(stop, start + length)):
        if text[place] == _BACKSLASH:
            return UNKNOWN
        if text[place] != pool[first + place - start]:
            return FAIL
    return PASS if stop - start >= length else FAIL


@inlined
def constant_of(index: Index, program: int, group: int, slot: int, name: int) -> int:
    """Where the constant lies that a slot or a step names."""
    if slot == _PARAMETER:
        return index.groups[group].first_constant + name
    return index.programs[program].first_fixed + name


@compiled
def measured(text: Bytes, place: int, timely: int, scratch: Scratch) -> tuple[int, float]:
    """The number, or the time, that a term is; read once for each term."""
    term = scratch.terms[place]
    if timely:
        if term.timely < 0:
            state, value = moment(text, term.start, term.stop)
            term.timely = state
            term.moment = value
        return term.timely, term.moment
    if term.numeric < 0:
        state, value = number(text, term.start, term.stop)
        term.numeric = state
        term.number = value
    return term.numeric, term.number


@inlined
def ordered(op: int, left: float, right: float) -> bool:
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
def passes(events: Events, program: int, group: int, index: Index, scratch: Scratch) -> int:
    """What the filters of a program say of the solution at hand."""
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
            stack[height - 1] = _joined(op, stack[height - 1], stack[height])
        else:
            stack[height] = _tested(op, step, program, group, events, index, scratch)
            height += 1
    return stack[0] if height > 0 else PASS


@compiled
def _joined(op: int, one: int, other: int) -> int:
    decisive = FAIL if op == _AND else PASS
    if one == decisive or other == decisive:
        return decisive
    return max(one, other) if max(one, other) >= ERROR else one


@compiled
def _tested(op: int, step: int, program: int, group: int, events: Events, index: Index, scratch: Scratch) -> int:
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
    constant = constant_of(index, program, group, index.steps[step].slot, index.steps[step].number)
    first, length = index.constants[constant].start, index.constants[constant].length
    if op >= _RELATED:
        return _related(op - _RELATED, place, constant, iri, events, index, scratch)
    if op == _SAME:
        return PASS if same(text, start, stop, index.pool, first, length) else FAIL
    if op == _LANG:
        return _tagged(text, start, stop, index.pool, first, length)
    if op == _DATATYPE:
        return _typed(text, start, stop, index.pool, first, length)
    if op in (_PREFIX, _STR_PREFIX):
        if byte == _QUOTE:
            if op == _PREFIX and text[stop - 1] == _CLOSE:
                return UNKNOWN
            return begins(text, start + 1, _body(text, start, stop), index.pool, first + 1, length - 2)
        if op == _STR_PREFIX and iri:
            return begins(text, start + 1, stop - 1, index.pool, first + 1, length - 2)
        return UNKNOWN
    return _compared(op, place, constant, text, index, scratch, iri)


@compiled
def _related(
    relation: int, place: int, constant: int, iri: bool, events: Events, index: Index, scratch: Scratch
) -> int:
    """Do ontologies say this of a term? Of what is no IRI they say nothing, nor its opposite."""
    if not iri:
        return ERROR
    term, other = scratch.terms[place], index.constants[constant]
    if _REFLEXIVE[relation] and same(events.text, term.start, term.stop, index.pool, other.start, other.length):
        return PASS
    name = number_of(index.relations, term.hash, events.text, term.start, term.stop)
    if name < 0:
        return FAIL
    end = other.start + other.length
    return PASS if holds(index.relations, relation, name, index.pool, other.start, end, other.hash) else FAIL


@compiled
def _body(text: Bytes, start: int, stop: int) -> int:
    """Where the body of a literal ends."""
    place = stop - 1
    while place > start and text[place] != _QUOTE:
        place -= 1
    return place


@compiled
def _tagged(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Is this the language of a literal? Tags are told apart as they are written."""
    if text[start] != _QUOTE:
        return ERROR if text[start] == _ANGLE and text[start + 1] != _ANGLE else UNKNOWN
    end = _body(text, start, stop)
    if end == stop - 1 or text[end + 1] != _AT:
        return PASS if length == 2 else FAIL
    for place in range(end + 2, stop - 1):
        if text[place] == _DASH and text[place + 1] == _DASH:
            return UNKNOWN  # a direction stands behind the tag
    return PASS if same(text, end + 2, stop, pool, first + 1, length - 2) else FAIL


@compiled
def _typed(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> int:
    """Is this the datatype of a literal? That of strings is not written."""
    if text[start] != _QUOTE:
        return ERROR if text[start] == _ANGLE and text[start + 1] != _ANGLE else UNKNOWN
    end = _body(text, start, stop)
    if end == stop - 1 or text[end + 1] == _AT:
        return UNKNOWN
    return PASS if same(text, end + 3, stop, pool, first, length) else FAIL


@compiled
def _compared(op: int, place: int, constant: int, text: Bytes, index: Index, scratch: Scratch, iri: bool) -> int:
    kind = index.constants[constant].kind
    start, stop = scratch.terms[place].start, scratch.terms[place].stop
    if kind in (NUMBER, MOMENT):
        state, value = measured(text, place, 1 if kind == MOMENT else 0, scratch)
        if state == DECIDED:
            return PASS if ordered(op, value, index.constants[constant].value) else FAIL
        if state == UNDECIDED:
            return UNKNOWN
        return _unlike(op, text, start, stop, iri)
    equal = same(text, start, stop, index.pool, index.constants[constant].start, index.constants[constant].length)
    if op in (_EQUAL, _NOT_EQUAL):
        if equal:
            return PASS if op == _EQUAL else FAIL
        plain = kind == STRING and text[start] == _QUOTE and text[stop - 1] == _QUOTE
        if iri or kind == IRI or plain:
            return FAIL if op == _EQUAL else PASS
    return UNKNOWN


@compiled
def _unlike(op: int, text: Bytes, start: int, stop: int, iri: bool) -> int:
    """A number or a time against what is neither. Of literals there is more to tell than this knows."""
    if not iri:
        return UNKNOWN
    if op in (_EQUAL, _NOT_EQUAL):
        return FAIL if op == _EQUAL else PASS
    return ERROR


@unfolded
def at_threshold(events: Events, program: int, group: int, index: Index, scratch: Scratch) -> tuple[int, float]:
    """Does the solution at hand pass the easiest threshold of a group, and with which value?"""
    variable = index.programs[program].threshold
    if variable < 0:
        return PASS, 0.0
    place = scratch.variables[variable].term
    state, value = measured(events.text, place, index.programs[program].timely, scratch)
    if state == DECIDED:
        easiest = index.groups[group].bound
        return (PASS if ordered(index.programs[program].direction, value, easiest) else FAIL), value
    if state == UNDECIDED:
        return UNKNOWN, 0.0
    start, stop = scratch.terms[place].start, scratch.terms[place].stop
    literal = events.text[start] == _QUOTE
    typed = closing(events.text, start, stop) >= 0
    return (UNKNOWN if literal and typed else FAIL), 0.0


@compiled
def beats(op: int, value: float, other: float) -> bool:
    """Does one value pass more thresholds than the other?"""
    return value > other if op in (_GREATER, _GREATER_EQUAL) else value < other
