"""Compiles expressions into functions of a solution, once for each query: logic, tests, functions, ontology operators.

None is a SPARQL error. An expression that the interpreter does not know raises `NotInterpretable` when it is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from triplewire.matching.interpreter import arithmetic, functions
from triplewire.matching.interpreter.arithmetic import compare_order, effective_boolean, equals, same_term
from triplewire.matching.interpreter.functions import CASTS, compile_regex
from triplewire.matching.interpreter.runs import (
    ExpressionFunction,
    InterpreterRun,
    NotInterpretable,
    OperatorFunction,
    Row,
    RowLayout,
    TestFunction,
)
from triplewire.matching.interpreter.values import TermValue, Undecided, boolean_value, parse_term, term_text
from triplewire.model.terms import parse_literal
from triplewire.sparql.algebra import Apply, Const, Exists, Expression, Family, Operator, Param, Var
from triplewire.sparql.compiler.functions import ONTOLOGY_FUNCTIONS, REFLEXIVE


def and_tests(tests: Sequence[TestFunction]) -> TestFunction:
    """`&&`: false if one is false, whatever the others are; None is an error."""
    return _combine_tests(tests, deciding=False)


def or_tests(tests: Sequence[TestFunction]) -> TestFunction:
    """`||`: true if one is true, whatever the others are; None is an error."""
    return _combine_tests(tests, deciding=True)


def _combine_tests(tests: Sequence[TestFunction], *, deciding: bool) -> TestFunction:
    def found(run: InterpreterRun, row: Row) -> bool | None:
        result: bool | None = not deciding
        unsure = None
        for test in tests:
            try:
                held = test(run, row)
            except Undecided as error:
                if run.left < 0:
                    raise
                unsure = error
                continue
            if held is deciding:
                return deciding
            if held is None:
                result = None
        if unsure is not None:
            raise unsure
        return result

    return found


def relation_test(relation: str, lower: ExpressionFunction, upper: ExpressionFunction) -> TestFunction:
    """A test whether two names are related. Terms that are not IRIs are errors."""
    reflexive = REFLEXIVE[relation]

    def found(run: InterpreterRun, row: Row) -> bool | None:
        one, other = _iri_text(lower(run, row)), _iri_text(upper(run, row))
        if one is None or other is None:
            return None
        return (reflexive and one == other) or run.known.holds(relation, one, other)

    return found


def property_test(
    subject: ExpressionFunction, property_: ExpressionFunction, object_: ExpressionFunction
) -> TestFunction:
    """A test whether a subject has an object for a property, by the ontologies."""

    def found(run: InterpreterRun, row: Row) -> bool | None:
        one, name, other = _iri_text(subject(run, row)), _iri_text(property_(run, row)), object_(run, row)
        if one is None or name is None:
            return None
        if other is None:
            raise Undecided
        return run.known.holds(name, one, term_text(other))

    return found


def _iri_text(given: TermValue | None) -> str | None:
    """The term of an IRI; None is an error."""
    if given is None:
        return None
    if given.family is None and (given.text or "").startswith("<"):
        raise Undecided
    return term_text(given) if given.family is Family.IRI else None


_NUMERIC = (Family.EXACT, Family.FLOAT, Family.DOUBLE)


@dataclass(frozen=True)
class ExpressionCompiler:
    """Compiles expressions. Raises NotInterpretable."""

    layout: RowLayout
    exists: Callable[[Operator], OperatorFunction]
    """Compiles the pattern of an EXISTS."""

    def value(self, expression: Expression) -> ExpressionFunction:
        match expression:
            case Var(name):
                slot = self.layout.slot(expression)
                return _read_computed(slot) if name in self.layout.made else _read_stored(slot)
            case Const() | Param():
                return _read_stored(self.layout.slot(expression))
            case Exists():
                return _as_value(self.test(expression))
            case Apply("if", (condition, yes, no)):
                return _if_value(self.test(condition), self.value(yes), self.value(no))
            case Apply("coalesce", args):
                values = [self.value(each) for each in args]
                return lambda run, row: next((each for value in values if (each := value(run, row)) is not None), None)
            case Apply(op) if op in _TESTS:
                return _as_value(self.test(expression))
            case Apply(op, args):
                function, given = _function(op, len(args)), [self.value(each) for each in args]
                return lambda run, row: function(*[value(run, row) for value in given])

    def test(self, expression: Expression) -> TestFunction:
        """The effective boolean value."""
        match expression:
            case Apply("&&", args):
                return and_tests([self.test(each) for each in args])
            case Apply("||", args):
                return or_tests([self.test(each) for each in args])
            case Apply("!", (inner,)):
                return _not_test(self.test(inner))
            case Apply("bound", (inner,)):
                return _unary_test(lambda given: given is not None, self.value(inner))
            case Exists(inner):
                operate = self.exists(inner)
                return lambda run, row: bool(operate(run, row))
            case Apply("in", (left, *members)):
                return self._among(left, members)
            case Apply("not in", (left, *members)):
                return _not_test(self._among(left, members))
            case Apply("regex", (given, Const(pattern), *flags)):
                return self._regex(given, pattern, flags)
            case Apply(op, (left, right)) if op in _BINARY_TESTS:
                return _binary_test(_BINARY_TESTS[op], self.value(left), self.value(right))
            case Apply(op, (inner,)) if op in _UNARY_TESTS:
                return _unary_test(_UNARY_TESTS[op], self.value(inner))
            case Apply(op, (lower, upper)) if op in REFLEXIVE:
                return relation_test(op, self.value(lower), self.value(upper))
            case Apply("has", (subject, property_, object_)):
                return property_test(self.value(subject), self.value(property_), self.value(object_))
            case Apply(op) if op in _TESTS:
                raise NotInterpretable(expression)
        return _unary_test(effective_boolean, self.value(expression))

    def _among(self, left: Expression, members: list[Expression]) -> TestFunction:
        """IN: an error on the left is an error, even if the list is empty."""
        value = self.value(left)
        if not members:
            return _unary_test(lambda given: None if given is None else False, value)
        return or_tests([_binary_test(equals, value, self.value(each)) for each in members])

    def _regex(self, given: Expression, pattern: str, flags: list[Expression]) -> TestFunction:
        words = [parse_literal(each.term) for each in (Const(pattern), *flags) if isinstance(each, Const)]
        search = (
            None if len(words) <= len(flags) else compile_regex(words[0].lexical, "".join(w.lexical for w in words[1:]))
        )
        if search is None or any(each.language or not each.datatype.endswith("#string") for each in words):
            raise NotInterpretable(pattern)

        def found(fact: TermValue | None) -> bool | None:
            words = functions.string_and_tag(fact)
            return None if words is None else search(words[0])

        return _unary_test(found, self.value(given))


def _read_stored(slot: int) -> ExpressionFunction:
    def found(_: InterpreterRun, row: Row) -> TermValue | None:
        term = row[slot]
        return None if term is None else parse_term(term)

    return found


def _read_computed(slot: int) -> ExpressionFunction:
    def found(run: InterpreterRun, row: Row) -> TermValue | None:
        term = row[slot]
        return None if term is None else run.made.get(term) or parse_term(term)

    return found


def _as_value(test: TestFunction) -> ExpressionFunction:
    return lambda run, row: boolean_value(test(run, row))


def _not_test(test: TestFunction) -> TestFunction:
    def found(run: InterpreterRun, row: Row) -> bool | None:
        held = test(run, row)
        return None if held is None else not held

    return found


def _unary_test(test: Callable[[TermValue | None], bool | None], value: ExpressionFunction) -> TestFunction:
    return lambda run, row: test(value(run, row))


def _binary_test(
    test: Callable[[TermValue | None, TermValue | None], bool | None],
    left: ExpressionFunction,
    right: ExpressionFunction,
) -> TestFunction:
    return lambda run, row: test(left(run, row), right(run, row))


def _if_value(condition: TestFunction, yes: ExpressionFunction, no: ExpressionFunction) -> ExpressionFunction:
    def found(run: InterpreterRun, row: Row) -> TermValue | None:
        held = condition(run, row)
        return None if held is None else yes(run, row) if held else no(run, row)

    return found


def _is(*families: Family) -> Callable[[TermValue | None], bool | None]:
    """Tests for IRIs and blank nodes, which are decided for every term."""
    return lambda given: None if given is None else given.family in families


def _is_numeric(given: TermValue | None) -> bool | None:
    found = arithmetic.as_number(given)
    return None if given is None else found is not None


def _differs(left: TermValue | None, right: TermValue | None) -> bool | None:
    same = equals(left, right)
    return None if same is None else not same


_UNARY_TESTS: Mapping[str, Callable[[TermValue | None], bool | None]] = {
    "isiri": _is(Family.IRI),
    "isblank": _is(Family.BLANK),
    "isliteral": lambda given: None if given is None else given.family not in (Family.IRI, Family.BLANK),
    "isnumeric": _is_numeric,
}
_BINARY_TESTS: Mapping[str, Callable[[TermValue | None, TermValue | None], bool | None]] = {
    "=": equals,
    "!=": _differs,
    **{op: partial(compare_order, op) for op in ("<", "<=", ">", ">=")},
    "sameterm": same_term,
    "contains": partial(functions.test_strings, lambda text, part: part in text),
    "strstarts": partial(functions.test_strings, str.startswith),
    "strends": partial(functions.test_strings, str.endswith),
    "langmatches": functions.lang_matches,
}
_TESTS = frozenset(
    {*_UNARY_TESTS, *_BINARY_TESTS, *ONTOLOGY_FUNCTIONS, "regex", "&&", "||", "!", "bound", "in", "not in"}
)

_FUNCTIONS: Mapping[tuple[str, int], Callable[..., TermValue | None]] = {
    **{(sign, 1): partial(arithmetic.apply_sign, sign) for sign in "+-"},
    **{(op, 2): partial(arithmetic.calculate, op) for op in "+-*/"},
    **{(way, 1): partial(arithmetic.round_number, way) for way in ("abs", "ceil", "floor", "round")},
    ("str", 1): functions.str_value,
    ("lang", 1): functions.lang,
    ("datatype", 1): functions.datatype,
    ("strlen", 1): functions.strlen,
    ("ucase", 1): partial(functions.map_string, str.upper),
    ("lcase", 1): partial(functions.map_string, str.lower),
    **{
        (name, 1): partial(functions.date_part, name)
        for name in ("year", "month", "day", "hours", "minutes", "seconds")
    },
    **{(name, 1): cast for name, cast in CASTS.items()},
    ("strbefore", 2): functions.str_before,
    ("strafter", 2): functions.str_after,
    ("substr", 2): lambda given, start: functions.substr(given, start, None, counting=False),
    ("substr", 3): partial(functions.substr, counting=True),
}


def _function(op: str, count: int) -> Callable[..., TermValue | None]:
    if op == "concat":
        return lambda *given: functions.concat([*given])
    if (op, count) not in _FUNCTIONS:
        raise NotInterpretable(op)
    return _FUNCTIONS[op, count]
