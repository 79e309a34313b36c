"""Backtracking search for the solutions of one group on one event, compiled.

Rows are bound to quads by hashes; when all are bound, filters and texts decide. A search that takes too many steps is
left to the evaluator.
"""

from __future__ import annotations

from triplewire.kernels.compiler import compiled, inlined, unfolded
from triplewire.kernels.words import same_bytes
from triplewire.matching.index import machine
from triplewire.matching.index.arrays import BatchArrays, IndexArrays, MatchBuffer, MatchScratch
from triplewire.matching.index.programs import SlotKind

HEADER_COUNT = 3
"""Headers that patterns can name: stream, source and application."""

_VARIABLE = int(SlotKind.VARIABLE)
_STEPS = 500_000
"""Quads that are tried for one group and event, some milliseconds, before the evaluator takes over."""
_FEW = 1_000
"""Quads that are tried for one access row before the steps of other access rows are added; most groups are done by
then."""


@inlined
def _row_at(depth: int, access: int) -> int:
    """The row that is tried at a depth: the access row first, then the others in order."""
    if depth == 0:
        return access
    return depth - 1 if depth <= access else depth


@unfolded
def solve_group(
    group: int,
    access: int,
    quad: int,
    event: int,
    quads: int,
    events: BatchArrays,
    index: IndexArrays,
    scratch: MatchScratch,
    found: MatchBuffer,
    rows: int,
) -> tuple[int, int]:
    """Write a row for each solution of a group whose access row is at a quad, or one row for all where solutions are
    not asked for. Return the number of rows, or -1 if the buffer is full, and the verdict.

    Compiled functions take their values one by one; therefore some have more than seven parameters.
    """
    program = index.groups[group].program
    count = index.programs[program].rows
    once = index.programs[program].solutions == 0
    decided = index.programs[program].threshold < 0
    if once and decided and _find_row(group, event, scratch, found, rows) >= 0:
        return rows, machine.PASS
    if quads > _FEW and _steps_spent(group, event, scratch) > _STEPS:
        return rows, machine.UNKNOWN
    for variable in range(index.programs[program].variables):
        scratch.variables[variable].depth = count
    depth, steps, counted, verdict = 0, 0, False, machine.FAIL
    scratch.cursor[0] = max(quad, 0) - 1
    while depth >= 0:
        if depth == count:
            state, value = _judge(event, program, group, access, events, index, scratch)
            if state == machine.UNKNOWN:
                return rows, machine.UNKNOWN
            if state == machine.PASS:
                verdict = machine.PASS
                rows = _write_row(group, event, value, program, access, index, scratch, found, rows)
                if rows < 0 or (once and decided):
                    return rows, machine.PASS
            depth -= 1
            continue
        stop = quads if depth else max(quad, 0) + 1
        steps -= scratch.cursor[depth]
        if _advance(depth, stop, access, event, program, group, events, index, scratch):
            steps += scratch.cursor[depth]
            depth += 1
            scratch.cursor[depth] = -1
        else:
            steps += stop
            depth -= 1
        if steps > _FEW and not counted:
            steps += _steps_spent(group, event, scratch)
            counted = True
        if steps > _STEPS:
            verdict = machine.UNKNOWN
            break
    if counted:
        scratch.spent[group] = (event + 1) << 32 | min(steps, _STEPS + 1)
    return rows, verdict


@inlined
def _steps_spent(group: int, event: int, scratch: MatchScratch) -> int:
    """The steps that the group took on the event, if they were many."""
    known = scratch.spent[group]
    return known & 0xFFFFFFFF if known >> 32 == event + 1 else 0


@inlined
def _find_row(group: int, event: int, scratch: MatchScratch, found: MatchBuffer, rows: int) -> int:
    """The row that the group has for this event, or -1."""
    row = scratch.seen[group]
    return row if row < rows and found.rows[row].group == group and found.rows[row].event == event else -1


@unfolded
def _advance(
    depth: int,
    stop: int,
    access: int,
    event: int,
    program: int,
    group: int,
    events: BatchArrays,
    index: IndexArrays,
    scratch: MatchScratch,
) -> bool:
    """Move the row at a depth to its next quad before `stop` that fits the bindings. Return False if there is none."""
    row = index.programs[program].first_row + _row_at(depth, access)
    if index.slots[3 * row].header < 0:
        first = scratch.cursor[depth] == -1
        scratch.cursor[depth] = 0
        return first and _header_fits(row, event, program, group, events, index)
    for quad in range(scratch.cursor[depth] + 1, stop):
        if _bind_row(row, quad, depth, program, group, index, scratch):
            scratch.cursor[depth] = quad
            return True
    return False


@compiled
def _header_fits(row: int, event: int, program: int, group: int, events: BatchArrays, index: IndexArrays) -> bool:
    """Does the header of the event have the hash of the constant of a row?"""
    literal = events.header[event * HEADER_COUNT - index.slots[3 * row].header - 1]
    slot, name = index.slots[3 * row + 2].slot, index.slots[3 * row + 2].number
    constant = machine.constant_index(index, program, group, slot, name)
    return literal >= 0 and index.constants[constant].hash == events.literal_hash[literal]


@unfolded
def _bind_row(
    row: int, quad: int, depth: int, program: int, group: int, index: IndexArrays, scratch: MatchScratch
) -> bool:
    """Bind the variables of a row to a quad if the hashes fit.

    Bindings of this depth or below are left from earlier quads and are overwritten: whenever a depth is reached, all
    depths above it are bound.
    """
    for place in range(3):
        there = index.slots[3 * row + place]
        term = 3 * quad + place
        hash_ = scratch.terms[term].hash
        if there.slot != _VARIABLE:
            if index.constants[machine.constant_index(index, program, group, there.slot, there.number)].hash != hash_:
                return False
        elif there.again >= 0:
            if scratch.terms[3 * quad + there.again].hash != hash_:
                return False
        elif scratch.variables[there.number].depth >= depth:
            scratch.variables[there.number].term = term
            scratch.variables[there.number].depth = depth
        elif scratch.terms[scratch.variables[there.number].term].hash != hash_:
            return False
    return True


@unfolded
def _judge(
    event: int, program: int, group: int, access: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch
) -> tuple[int, float]:
    """Decide by texts and filters whether the bindings are a solution. Return its value for the threshold, too."""
    state, value = machine.test_threshold(events, program, group, index, scratch)
    if state == machine.FAIL:
        return machine.FAIL, value
    filtered = machine.run_filters(events, program, group, index, scratch)
    if filtered != machine.PASS and filtered != machine.UNKNOWN:
        return machine.FAIL, value
    if not _verify_texts(event, program, group, access, events, index, scratch):
        return machine.FAIL, value
    return max(state, filtered), value


@unfolded
def _verify_texts(
    event: int, program: int, group: int, access: int, events: BatchArrays, index: IndexArrays, scratch: MatchScratch
) -> bool:
    """Are terms with the same hash really the same?"""
    for depth in range(index.programs[program].rows):
        row = _row_at(depth, access)
        number = index.programs[program].first_row + row
        header = index.slots[3 * number].header
        for place in range(2 if header < 0 else 0, 3):
            slot, name = index.slots[3 * number + place].slot, index.slots[3 * number + place].number
            if header < 0:
                literal = events.header[event * HEADER_COUNT - header - 1]
                text, start, stop = (
                    events.literal_text,
                    events.literal_start[literal],
                    events.literal_start[literal + 1],
                )
            else:
                term = 3 * scratch.cursor[depth] + place
                text, start, stop = events.text, scratch.terms[term].start, scratch.terms[term].stop
            if slot == _VARIABLE:
                bound = scratch.terms[scratch.variables[name].term]
                first, length = bound.start, bound.stop - bound.start
                if not same_bytes(text, start, stop, events.text, first, length):
                    return False
            else:
                constant = machine.constant_index(index, program, group, slot, name)
                first, length = index.constants[constant].start, index.constants[constant].length
                if not same_bytes(text, start, stop, index.pool, first, length):
                    return False
    return True


@unfolded
def _write_row(
    group: int,
    event: int,
    value: float,
    program: int,
    access: int,
    index: IndexArrays,
    scratch: MatchScratch,
    found: MatchBuffer,
    rows: int,
) -> int:
    """Write a row for the current solution, or improve the value of the group's row. Return the number of rows."""
    once = index.programs[program].solutions == 0
    known = _find_row(group, event, scratch, found, rows) if once else -1
    if known >= 0:
        if machine.passes_more(index.programs[program].direction, value, found.rows[known].value):
            found.rows[known].value = value
        return rows
    if rows == len(found.rows):
        return -1
    row_ = found.rows[rows]
    row_.event = event
    row_.group = group
    row_.value = value
    width = len(found.quads) // len(found.rows)
    for depth in range(index.programs[program].rows):
        row = _row_at(depth, access)
        header = index.slots[3 * (index.programs[program].first_row + row)].header
        found.quads[rows * width + row] = header if header < 0 else scratch.cursor[depth]
    scratch.seen[group] = rows
    return rows + 1
