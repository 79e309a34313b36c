"""Writing programs: from a shape to what the index does for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from triplewire.matching.index.programs import (
    BEGINS,
    EQUAL_NUMBER,
    MOST_PATTERNS,
    RELATED,
    Hint,
    Op,
    Place,
    Program,
    Row,
    Slot,
    Step,
    Threshold,
)
from triplewire.matching.index.relations import NUMBERS
from triplewire.matching.shapes import Shape
from triplewire.sparql import Apply, Conjunction, Const, Expression, Node, Param, Pattern, Var
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.scans import HEADER_PREDICATES

_COMPARISONS = {
    "=": Op.EQUAL,
    "!=": Op.NOT_EQUAL,
    "<": Op.LESS,
    "<=": Op.LESS_EQUAL,
    ">": Op.GREATER,
    ">=": Op.GREATER_EQUAL,
}
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TESTS = {"isiri": Op.IS_IRI, "isuri": Op.IS_IRI, "isblank": Op.IS_BLANK, "isliteral": Op.IS_LITERAL}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_ORDERED = frozenset({Family.EXACT, Family.DOUBLE, Family.DATETIME})
_NUMBERS = frozenset({Family.EXACT, Family.DOUBLE})
_NAMED = frozenset({Family.IRI, Family.STRING})
"""Constants that equal only themselves."""
_COMPARED = _ORDERED | {Family.IRI, Family.STRING}


class Beyond(Exception):
    """The index does not decide this."""


def program(shape: Shape) -> Program | None:
    """The program of a shape; None for what the index does not decide."""
    query = shape.query
    if not isinstance(query, Conjunction) or query.limit is not None or query.offset:
        return None
    if not 0 < len(query.patterns) <= MOST_PATTERNS:
        return None
    try:
        return _Writer(query).program(shape.solutions)
    except Beyond:
        return None


def written(query: Conjunction) -> Program:
    """The program that tells whether a conjunction has a solution. Raises Beyond."""
    return _Writer(query).program(False)


def naming(patterns: Sequence[Pattern], conditions: Sequence[Expression]) -> Iterator[Expression]:
    """Those of the conditions that name the object of a pattern, or what it begins with, or is in a relation with."""
    writer = _Writer(Conjunction("ask", tuple(patterns)))
    return (part for each in conditions for part in _conjuncts(each) if writer.hint(part) is not None)


@dataclass
class _Writer:
    query: Conjunction
    names: dict[str, int] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)

    def program(self, solutions: bool) -> Program:
        self._number()
        rows = tuple(self._row(each) for each in self.query.patterns)
        conditions = [part for each in self.query.filters for part in _conjuncts(each)]
        threshold = next((found for each in conditions if (found := self._threshold(each))), None)
        rest = [each for each in conditions if threshold is None or self._threshold(each) != threshold]
        steps = [step for each in rest for step in self._steps(each)]
        steps += [Step(Op.AND)] * max(0, len(rest) - 1)
        hints = tuple(hint for each in rest if (hint := self.hint(each)))
        return Program(rows, len(self.names), tuple(steps), tuple(self.fixed), threshold, solutions, hints)

    def _number(self) -> None:
        """Variables that hold terms of quads. The event itself, as the name of its graph or in front of a header, may
        have a name only if that is all that the name is for."""
        events = {node.name for pattern in self.query.patterns for node in _of_event(pattern) if isinstance(node, Var)}
        for pattern in self.query.patterns:
            if any(not isinstance(node, Var) for node in _of_event(pattern)):
                raise Beyond
            for node in _of_quad(pattern):
                if isinstance(node, Var):
                    if node.name in events:
                        raise Beyond
                    self.names.setdefault(node.name, len(self.names))

    def _row(self, pattern: Pattern) -> Row:
        header = header_of(pattern)
        if header is None:
            return Row((self._place(pattern.subject), self._place(pattern.predicate), self._place(pattern.object)))
        if header < -3 or isinstance(pattern.object, Var):
            raise Beyond
        return Row((Place(Slot.NOTHING), Place(Slot.NOTHING), self._place(pattern.object)), header)

    def _place(self, node: Node) -> Place:
        match node:
            case Var(name):
                return Place(Slot.VARIABLE, self.names[name])
            case Const(term):
                return Place(Slot.FIXED, self.fixed.setdefault(term, len(self.fixed)))
            case Param(index):
                return Place(Slot.PARAMETER, index)

    def _threshold(self, condition: Expression) -> Threshold | None:
        match condition:
            case Apply(op, (Var(name), Param(index, family))) if op in _ORDERS and family in _ORDERED:
                return Threshold(self._variable(name), _COMPARISONS[op], index, family)
            case Apply(op, (Param() as param, Var() as variable)) if op in _ORDERS:
                return self._threshold(Apply(_TURNED[op], (variable, param)))
        return None

    def hint(self, condition: Expression) -> Hint | None:
        match condition:
            case Apply("=" | "in", (Var(name), *members)):
                found = [each for each in members if isinstance(each, Param) and each.family in _NAMED]
                numbers = [each for each in members if isinstance(each, Param) and each.family in _NUMBERS]
                row = self._row_of(name)
                if row is not None and found and len(found) == len(members):
                    return Hint(row, tuple(each.index for each in found))
                if row is not None and numbers and len(numbers) == len(members):
                    return Hint(row, tuple(each.index for each in numbers), EQUAL_NUMBER)
            case Apply("||", (Apply("sameterm", (Var(name), Param())), *_) as args):
                named, row = [*_named(name, args)], self._row_of(name)
                return Hint(row, tuple(named)) if row is not None and len(named) == len(args) else None
            case Apply("strstarts", (Apply("str", (Var(name),)) | Var(name), Param(index, Family.STRING))):
                row = self._row_of(name)
                return None if row is None else Hint(row, (index,), BEGINS)
            case Apply(op, (Var(name), Param(index, Family.IRI))) if (op, False) in NUMBERS:
                row = self._row_of(name)
                return None if row is None else Hint(row, (index,), RELATED + NUMBERS[op, False])
            case Apply(op, (Param(index, Family.IRI), Var(name))) if (op, True) in NUMBERS:
                row = self._row_of(name)
                return None if row is None else Hint(row, (index,), RELATED + NUMBERS[op, True])
        return None

    def _row_of(self, name: str) -> int | None:
        """A stored row that has a variable as its object, and a constant as its predicate."""
        for number, pattern in enumerate(self.query.patterns):
            if pattern.object == Var(name) and not isinstance(pattern.predicate, Var) and header_of(pattern) is None:
                return number
        return None

    def _steps(self, condition: Expression) -> Iterator[Step]:
        match condition:
            case Apply("&&" | "||" as op, args):
                for each in args:
                    yield from self._steps(each)
                yield from [Step(Op.AND if op == "&&" else Op.OR)] * (len(args) - 1)
            case Apply("!", (inner,)):
                yield from self._steps(inner)
                yield Step(Op.NOT)
            case Apply("in", (found, *members)):
                for each in members:
                    yield from self._steps(Apply("=", (found, each)))
                yield from [Step(Op.OR)] * (len(members) - 1) if members else [Step(Op.FALSE)]
            case Apply("not in", args):
                yield from self._steps(Apply("!", (Apply("in", args),)))
            case _:
                yield self._test(condition)

    def _test(self, condition: Expression) -> Step:
        match condition:
            case Apply(op, (Var(name),)) if op in _TESTS:
                return Step(_TESTS[op], self._variable(name))
            case Apply("bound", (Var(name),)):
                self._variable(name)
                return Step(Op.TRUE)
            case Apply("strstarts", (Apply("str", (Var(name),)), Param(index, Family.STRING))):
                return Step(Op.STR_PREFIX, self._variable(name), Place(Slot.PARAMETER, index))
            case Apply("strstarts", (Var(name), Param(index, Family.STRING))):
                return Step(Op.PREFIX, self._variable(name), Place(Slot.PARAMETER, index))
            case Apply("=", (Apply("lang", (Var(name),)), Param(index, Family.STRING))):
                return Step(Op.LANG, self._variable(name), Place(Slot.PARAMETER, index))
            case Apply("=", (Apply("datatype", (Var(name),)), Param(index, Family.IRI))):
                return Step(Op.DATATYPE, self._variable(name), Place(Slot.PARAMETER, index))
            case Apply("sameterm", (Var(name), Param(index))):
                return Step(Op.SAME, self._variable(name), Place(Slot.PARAMETER, index))
            case Apply(op, (Var(name), Param(index, Family.IRI))) if (op, False) in NUMBERS:
                return Step(Op.RELATED + NUMBERS[op, False], self._variable(name), Place(Slot.PARAMETER, index))
            case Apply(op, (Param(index, Family.IRI), Var(name))) if (op, True) in NUMBERS:
                return Step(Op.RELATED + NUMBERS[op, True], self._variable(name), Place(Slot.PARAMETER, index))
            case Apply(op, (Var(name), Param(index, family))) if op in _COMPARISONS and family in _COMPARED:
                return Step(_COMPARISONS[op], self._variable(name), Place(Slot.PARAMETER, index))
            case Apply(op, (Param() as param, Var() as variable)) if op in _COMPARISONS:
                return self._test(Apply(_TURNED[op], (variable, param)))
        raise Beyond

    def _variable(self, name: str) -> int:
        if name not in self.names:
            raise Beyond
        return self.names[name]


def _named(name: str, conditions: Sequence[Expression]) -> Iterator[int]:
    """The parameters of those conditions that say that a variable is one."""
    for each in conditions:
        match each:
            case Apply("sameterm", (Var(found), Param(index))) if found == name:
                yield index


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Apply) and condition.op == "&&":
        for each in condition.args:
            yield from _conjuncts(each)
    else:
        yield condition


def header_of(pattern: Pattern) -> int | None:
    """The number of the virtual quad that a pattern is about."""
    if pattern.graph is not None or not isinstance(pattern.predicate, Const):
        return None
    found = HEADER_PREDICATES.get(pattern.predicate.term)
    return None if found is None else found[1]


def _of_event(pattern: Pattern) -> tuple[Node, ...]:
    graph = () if pattern.graph is None else (pattern.graph,)
    return graph if header_of(pattern) is None else (pattern.subject, *graph)


def _of_quad(pattern: Pattern) -> tuple[Node, ...]:
    if header_of(pattern) is not None:
        return (pattern.object,)
    return pattern.subject, pattern.predicate, pattern.object
