"""Index programs: the patterns and filters of a shape, compiled for the index.

A program has the patterns of a conjunction, slot by slot, and its filters as code for a small stack machine over true,
false, error and undecided. One comparison with a constant may be left out of the code: it becomes the threshold by
which the subscriptions of one group differ. A shape that the index cannot decide has no program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from triplewire.matching.shapes import Shape
from triplewire.sparql import Apply, Conjunction, Const, Expression, Node, Param, Pattern, Var
from triplewire.sparql.algebra import HEADER_PREDICATES, Family
from triplewire.sparql.traversal import conjuncts

RELATIONS: Sequence[tuple[str, bool]] = (
    ("below", False),
    ("strictly", False),
    ("equivalent", False),
    ("is_a", False),
    ("below", True),
    ("strictly", True),
)
"""Functions of the algebra, by number, and whether their second argument is the value of the event."""
RELATION_NUMBERS: Mapping[tuple[str, bool], int] = {each: number for number, each in enumerate(RELATIONS)}
REFLEXIVE = (True, False, True, False, True, False)
"""Whether each relation is reflexive."""

MOST_PATTERNS = 16
"""The most patterns of a shape that the index takes."""

HINT_EQUAL, HINT_PREFIX, HINT_SUFFIX, HINT_NUMBER, HINT_RELATED = 0, 1, 2, 3, 4
"""Relations between a hint and an object; ontology relations are numbered from the last on."""


class SlotKind(IntEnum):
    """The content of a slot of a pattern."""

    VARIABLE = 0
    FIXED = 1
    """A constant of the shape."""
    PARAMETER = 2
    """A constant of the group."""
    NOTHING = 3


class Opcode(IntEnum):
    """Instructions of the filter machine. Tests read a variable and push a result; AND, OR and NOT combine results."""

    EQUAL = 0
    NOT_EQUAL = 1
    LESS = 2
    LESS_EQUAL = 3
    GREATER = 4
    GREATER_EQUAL = 5
    PREFIX = 6
    """Compare the text of a string."""
    STR_PREFIX = 7
    """Compare the result of STR()."""
    SUFFIX = 8
    STR_SUFFIX = 9
    IS_IRI = 10
    IS_BLANK = 11
    IS_LITERAL = 12
    LANG = 13
    DATATYPE = 14
    SAME = 15
    """Compare terms, not values."""
    TRUE = 16
    FALSE = 17
    AND = 18
    OR = 19
    NOT = 20
    RELATED = 21
    """Test an ontology relation. The relations are numbered from here on."""


@dataclass(frozen=True)
class Threshold:
    """`variable op parameter`, by which the members of a group differ."""

    variable: int
    op: Opcode
    parameter: int
    family: Family


@dataclass(frozen=True)
class ProgramSlot:
    """A slot of a pattern, with the number of its variable, fixed constant or parameter."""

    slot: SlotKind
    number: int = 0


@dataclass(frozen=True)
class ProgramRow:
    """A pattern of a program. `header` is the number of the virtual quad that it is about, 0 for stored ones."""

    slots: tuple[ProgramSlot, ProgramSlot, ProgramSlot]
    header: int = 0

    def again(self, place: int) -> int:
        """The earlier slot with the same variable, or -1."""
        there = self.slots[place]
        return self.slots.index(there) if there.slot is SlotKind.VARIABLE and there in self.slots[:place] else -1


@dataclass(frozen=True)
class Instruction:
    """A test of a variable against a constant, or a connective."""

    op: int
    variable: int = -1
    constant: ProgramSlot = ProgramSlot(SlotKind.NOTHING)


@dataclass(frozen=True)
class KeyHint:
    """A filter on the object of a row: it equals one of these parameters, or it starts or ends with the only one, or
    is related to it."""

    row: int
    parameters: tuple[int, ...]
    way: int = HINT_EQUAL


@dataclass(frozen=True)
class IndexProgram:
    """The patterns and filters of a shape for the index. `fixed` are the constants that slots and steps refer to by
    number."""

    rows: tuple[ProgramRow, ...]
    variables: int
    steps: tuple[Instruction, ...]
    fixed: tuple[str, ...]
    threshold: Threshold | None
    solutions: bool
    hints: tuple[KeyHint, ...] = ()

    @property
    def parameters(self) -> set[int]:
        """The parameters in its rows and steps."""
        named = (*(place for row in self.rows for place in row.slots), *(step.constant for step in self.steps))
        return {place.number for place in named if place.slot is SlotKind.PARAMETER}


class _EndOfText(NamedTuple):
    """A function that compares the beginning, or the end, of a text: its hint and its tests."""

    hint: int
    test: Opcode
    str_test: Opcode


_COMPARISONS = {
    "=": Opcode.EQUAL,
    "!=": Opcode.NOT_EQUAL,
    "<": Opcode.LESS,
    "<=": Opcode.LESS_EQUAL,
    ">": Opcode.GREATER,
    ">=": Opcode.GREATER_EQUAL,
}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TESTS = {"isiri": Opcode.IS_IRI, "isuri": Opcode.IS_IRI, "isblank": Opcode.IS_BLANK, "isliteral": Opcode.IS_LITERAL}
_ENDS = {
    "strstarts": _EndOfText(HINT_PREFIX, Opcode.PREFIX, Opcode.STR_PREFIX),
    "strends": _EndOfText(HINT_SUFFIX, Opcode.SUFFIX, Opcode.STR_SUFFIX),
}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_ORDERED = frozenset({Family.EXACT, Family.DOUBLE, Family.DATETIME})
_NUMBERS = frozenset({Family.EXACT, Family.DOUBLE})
_NAMED = frozenset({Family.IRI, Family.STRING})
"""Families of constants that equal only themselves."""
_COMPARED = _ORDERED | {Family.IRI, Family.STRING}


class NotIndexable(Exception):
    """The index cannot decide this query."""


def compile_program(shape: Shape) -> IndexProgram | None:
    """The program of a shape, or None if the index cannot decide it."""
    query = shape.query
    if not isinstance(query, Conjunction) or query.limit is not None or query.offset:
        return None
    if not 0 < len(query.patterns) <= MOST_PATTERNS:
        return None
    try:
        return _ProgramCompiler(query).program(shape.solutions)
    except NotIndexable:
        return None


def compile_conjunction(query: Conjunction) -> IndexProgram:
    """The program that decides whether a conjunction has a solution. Raises NotIndexable."""
    return _ProgramCompiler(query).program(False)


def select_key_conditions(patterns: Sequence[Pattern], conditions: Sequence[Expression]) -> Iterator[Expression]:
    """The conditions that give an access key: on the object of a pattern, its prefix or suffix, or an ontology
    relation with it."""
    writer = _ProgramCompiler(Conjunction("ask", tuple(patterns)))
    return (part for part in conjuncts(*conditions) if writer.hint(part) is not None)


@dataclass
class _ProgramCompiler:
    query: Conjunction
    names: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)

    def program(self, solutions: bool) -> IndexProgram:
        self._number()
        rows = tuple(self._row(each) for each in self.query.patterns)
        conditions = conjuncts(*self.query.filters)
        threshold = next((found for each in conditions if (found := self._threshold(each))), None)
        rest = [each for each in conditions if threshold is None or self._threshold(each) != threshold]
        steps = [step for each in rest for step in self._steps(each)]
        steps += [Instruction(Opcode.AND)] * max(0, len(rest) - 1)
        hints = tuple(hint for each in rest if (hint := self.hint(each)))
        return IndexProgram(rows, len(self.names), tuple(steps), tuple(self.fixed), threshold, solutions, hints)

    def _number(self) -> None:
        """Number the variables that hold terms of quads. A variable for the event itself (its graph, or the subject
        of a header) may occur nowhere else."""
        events = {
            node.name for pattern in self.query.patterns for node in _event_nodes(pattern) if isinstance(node, Var)
        }
        for pattern in self.query.patterns:
            if any(not isinstance(node, Var) for node in _event_nodes(pattern)):
                raise NotIndexable
            for node in _quad_nodes(pattern):
                if isinstance(node, Var):
                    if node.name in events:
                        raise NotIndexable
                    self.names.setdefault(node.name, len(self.names))

    def _row(self, pattern: Pattern) -> ProgramRow:
        header = header_number(pattern)
        if header is None:
            return ProgramRow((self._slot(pattern.subject), self._slot(pattern.predicate), self._slot(pattern.object)))
        if header < -3 or isinstance(pattern.object, Var):
            raise NotIndexable
        return ProgramRow(
            (ProgramSlot(SlotKind.NOTHING), ProgramSlot(SlotKind.NOTHING), self._slot(pattern.object)), header
        )

    def _slot(self, node: Node) -> ProgramSlot:
        match node:
            case Var(name):
                return ProgramSlot(SlotKind.VARIABLE, self.names[name])
            case Const(term):
                return ProgramSlot(SlotKind.FIXED, self.fixed.setdefault(term, len(self.fixed)))
            case Param(index):
                return ProgramSlot(SlotKind.PARAMETER, index)

    def _threshold(self, condition: Expression) -> Threshold | None:
        match condition:
            case Apply(op, (Var(name), Param(index, family))) if op in _ORDERS and family in _ORDERED:
                return Threshold(self._variable(name), _COMPARISONS[op], index, family)
            case Apply(op, (Param() as param, Var() as variable)) if op in _ORDERS:
                return self._threshold(Apply(_TURNED[op], (variable, param)))
        return None

    def hint(self, condition: Expression) -> KeyHint | None:
        way = HINT_EQUAL
        match condition:
            case Apply("=" | "in", (Var(name), *members)):
                families = {each.family if isinstance(each, Param) else None for each in members}
                if not families or not (families <= _NAMED or families <= _NUMBERS):
                    return None
                indexes = [each.index for each in members if isinstance(each, Param)]
                way = HINT_EQUAL if families <= _NAMED else HINT_NUMBER
            case Apply("||", (Apply("sameterm", (Var(name), Param())), *_) as args):
                indexes = [*_same_term_parameters(name, args)]
                if len(indexes) < len(args):
                    return None
            case Apply(op, (Apply("str", (Var(name),)) | Var(name), Param(index, Family.STRING))) if op in _ENDS:
                indexes, way = [index], _ENDS[op].hint
            case Apply(op, (Var(name), Param(index, Family.IRI))) if (op, False) in RELATION_NUMBERS:
                indexes, way = [index], HINT_RELATED + RELATION_NUMBERS[op, False]
            case Apply(op, (Param(index, Family.IRI), Var(name))) if (op, True) in RELATION_NUMBERS:
                indexes, way = [index], HINT_RELATED + RELATION_NUMBERS[op, True]
            case _:
                return None
        row = self._row_of(name)
        return None if row is None else KeyHint(row, tuple(indexes), way)

    def _row_of(self, name: str) -> int | None:
        """A stored row with this variable as object and a constant predicate."""
        for number, pattern in enumerate(self.query.patterns):
            if (
                pattern.object == Var(name)
                and not isinstance(pattern.predicate, Var)
                and header_number(pattern) is None
            ):
                return number
        return None

    def _steps(self, condition: Expression) -> Iterator[Instruction]:
        match condition:
            case Apply("&&" | "||" as op, args):
                for each in args:
                    yield from self._steps(each)
                yield from [Instruction(Opcode.AND if op == "&&" else Opcode.OR)] * (len(args) - 1)
            case Apply("!", (inner,)):
                yield from self._steps(inner)
                yield Instruction(Opcode.NOT)
            case Apply("in", (found, *members)):
                for each in members:
                    yield from self._steps(Apply("=", (found, each)))
                yield from [Instruction(Opcode.OR)] * (len(members) - 1) if members else [Instruction(Opcode.FALSE)]
            case Apply("not in", args):
                yield from self._steps(Apply("!", (Apply("in", args),)))
            case _:
                yield self._test(condition)

    def _test(self, condition: Expression) -> Instruction:
        code: int
        match condition:
            case Apply(op, (Var(name),)) if op in _TESTS:
                return Instruction(_TESTS[op], self._variable(name))
            case Apply("bound", (Var(name),)):
                self._variable(name)
                return Instruction(Opcode.TRUE)
            case Apply(op, (Apply("str", (Var(name),)), Param(index, Family.STRING))) if op in _ENDS:
                code = _ENDS[op].str_test
            case Apply(op, (Var(name), Param(index, Family.STRING))) if op in _ENDS:
                code = _ENDS[op].test
            case Apply("=", (Apply("lang", (Var(name),)), Param(index, Family.STRING))):
                code = Opcode.LANG
            case Apply("=", (Apply("datatype", (Var(name),)), Param(index, Family.IRI))):
                code = Opcode.DATATYPE
            case Apply("sameterm", (Var(name), Param(index))):
                code = Opcode.SAME
            case Apply(op, (Var(name), Param(index, Family.IRI))) if (op, False) in RELATION_NUMBERS:
                code = Opcode.RELATED + RELATION_NUMBERS[op, False]
            case Apply(op, (Param(index, Family.IRI), Var(name))) if (op, True) in RELATION_NUMBERS:
                code = Opcode.RELATED + RELATION_NUMBERS[op, True]
            case Apply(op, (Var(name), Param(index, family))) if op in _COMPARISONS and family in _COMPARED:
                code = _COMPARISONS[op]
            case Apply(op, (Param() as param, Var() as variable)) if op in _COMPARISONS:
                return self._test(Apply(_TURNED[op], (variable, param)))
            case _:
                raise NotIndexable
        return Instruction(code, self._variable(name), ProgramSlot(SlotKind.PARAMETER, index))

    def _variable(self, name: str) -> int:
        if name not in self.names:
            raise NotIndexable
        return self.names[name]


def _same_term_parameters(name: str, conditions: Sequence[Expression]) -> Iterator[int]:
    """The parameters that `sameTerm` conditions compare the variable with."""
    for each in conditions:
        match each:
            case Apply("sameterm", (Var(found), Param(index))) if found == name:
                yield index


def header_number(pattern: Pattern) -> int | None:
    """The number of the virtual quad that a pattern is about, or None."""
    if pattern.graph is not None or not isinstance(pattern.predicate, Const):
        return None
    found = HEADER_PREDICATES.get(pattern.predicate.term)
    return None if found is None else found[1]


def _event_nodes(pattern: Pattern) -> tuple[Node, ...]:
    graph = () if pattern.graph is None else (pattern.graph,)
    return graph if header_number(pattern) is None else (pattern.subject, *graph)


def _quad_nodes(pattern: Pattern) -> tuple[Node, ...]:
    if header_number(pattern) is not None:
        return (pattern.object,)
    return pattern.subject, pattern.predicate, pattern.object
