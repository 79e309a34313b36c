"""The store: the arrays of the index, which grow as programs and groups come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from triplewire.matching.index.arrays import (
    CONSTANT,
    GROUP,
    HINT,
    KEY,
    PLACE,
    POSTING,
    PROGRAM,
    STEP,
    Index,
    Records,
    UInt64,
)
from triplewire.matching.index.building import describe, link, rehash
from triplewire.matching.index.keys import KINDS, LONGEST
from triplewire.matching.index.programs import Program
from triplewire.matching.index.relations import related
from triplewire.sparql.algebra import Family

_BITS_PER_KEY = 8
"""Of the sieve for each place of the table, at most half of which are taken: one key in sixteen that is not there
passes it."""


class Store:
    """Grows by whole batches. What `index` gave before still holds what it held, but nothing new."""

    def __init__(self) -> None:
        self._groups = Column(GROUP)
        self._constants = Column(CONSTANT)
        self._pool = Column(np.dtype(np.uint8))
        self._programs = Column(PROGRAM)
        self._places = Column(PLACE)
        self._steps = Column(STEP)
        self._hints = Column(HINT)
        self._postings = Column(POSTING)
        self._widest: list[int] = []
        """Of each program: the keys that a group of it may have."""
        self._uses = np.zeros(KINDS + LONGEST + 1, np.int8)
        self._keys, self._sieve = _table(64)
        self.relations = related(())
        """What ontologies say."""

    @property
    def groups(self) -> int:
        """How many there are."""
        return self._groups.size

    @property
    def steps(self) -> int:
        return self._steps.size

    @property
    def index(self) -> Index:
        return Index(
            self._programs.data,
            self._places.data,
            self._steps.data,
            self._hints.data,
            self._groups.data,
            self._constants.data,
            self._pool.data,
            self._keys,
            self._postings.data,
            self._sieve,
            self._uses,
            self.relations,
        )

    def add_program(self, program: Program) -> int:
        """The number of the program that is added."""
        limit = program.threshold
        made = np.zeros(1, PROGRAM)
        made["first_fixed"] = self._add_constants([program.fixed])
        made["first_row"], made["rows"] = self._places.size // 3, len(program.rows)
        made["first_step"], made["steps"] = self._steps.size, len(program.steps)
        made["variables"], made["solutions"] = program.variables, program.solutions
        made["threshold"] = -1 if limit is None else limit.variable
        made["direction"] = 0 if limit is None else limit.op
        made["timely"] = limit is not None and limit.family is Family.DATETIME
        places = [
            (each.number, each.slot, row.header, row.again(at))
            for row in program.rows
            for at, each in enumerate(row.places)
        ]
        self._places.extend(np.array(places, PLACE))
        steps = [(each.variable, each.constant.number, each.op, each.constant.slot) for each in program.steps]
        self._steps.extend(np.array(steps, STEP))
        made["first_hint"] = self._hints.size
        hints = [
            (number, choice, hint.row, hint.way)
            for choice, hint in enumerate(program.hints)
            for number in hint.parameters
        ]
        made["hints"] = len(hints)
        self._hints.extend(np.array(hints, HINT))
        self._widest.append(max([3, *(1 + len(each.parameters) for each in program.hints)]))
        self._programs.extend(made)
        return self._programs.size - 1

    def add_groups(self, program: int, constants: Sequence[Sequence[str]], bounds: Sequence[float]) -> int:
        """Groups of a program with the constants of each; the number of the first."""
        first = self._groups.size
        width = np.fromiter((len(each) for each in constants), np.int64, len(constants))
        made = np.zeros(len(constants), GROUP)
        made["program"] = program
        made["first_constant"] = self._add_constants(constants) + np.cumsum(width) - width
        made["bound"] = bounds
        made["members"] = 1
        self._groups.extend(made)
        self._postings.reserve(len(constants) * self._widest[program])
        self._reserve()
        self._postings.size = link(self.index, first, self._groups.size, self._postings.size)
        return first

    def join(self, group: int, bound: float, *, above: bool) -> None:
        """One member more; a threshold that is easier to pass than the others counts for all."""
        record = self._groups.data[group]
        record["members"] += 1
        record["bound"] = min(record["bound"], bound) if above else max(record["bound"], bound)

    def leave(self, group: int) -> None:
        """One member less."""
        self._groups.data[group]["members"] -= 1

    def _add_constants(self, rows: Sequence[Sequence[str]]) -> int:
        """Put texts into the pool, row after row; the number of the first."""
        texts = [text.encode() for row in rows for text in row]
        made = np.zeros(len(texts), CONSTANT)
        length = np.fromiter(map(len, texts), np.int64, len(texts))
        made["length"] = length
        made["start"] = self._pool.size + np.cumsum(length) - length
        first = self._constants.size
        self._pool.extend(np.frombuffer(b"".join(texts), np.uint8))
        self._constants.extend(made)
        describe(self._pool.data, self._constants.data, first, self._constants.size)
        return first

    def _reserve(self) -> None:
        """Room in the table for twice as many keys as there can be."""
        most = len(self._postings.data)
        if 2 * most > len(self._keys):
            old = self._keys
            self._keys, self._sieve = _table(2 * most)
            rehash(self.index, old)


class Column:
    """An array that grows, twice as long each time."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.data: Records = np.zeros(64, kind)
        self.size = 0

    def extend(self, more: Records) -> None:
        self.reserve(len(more))
        self.data[self.size : self.size + len(more)] = more
        self.size += len(more)

    def reserve(self, count: int) -> None:
        """Room for so many more."""
        size = self.size + count
        if size > len(self.data):
            longer = np.zeros(max(2 * len(self.data), size), self.data.dtype)
            longer[: self.size] = self.data[: self.size]
            self.data = longer


def _table(size: int) -> tuple[Records, UInt64]:
    capacity = 1 << max(6, (size - 1).bit_length())
    keys = np.zeros(capacity, KEY)
    keys["head"] = -1
    return keys, np.zeros(capacity * _BITS_PER_KEY // 64, np.uint64)
