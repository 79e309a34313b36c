"""Expressions, made into functions of a solution once for each query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from triplewire.matching.singles import dates, numbers, strings
from triplewire.matching.singles.casts import CASTS
from triplewire.matching.singles.comparisons import effective, equals, ordered, same_term
from triplewire.matching.singles.facts import Fact, boolean, fact
from triplewire.matching.singles.logic import conjoined, disjoined
from triplewire.matching.singles.ontologies import having, related
from triplewire.matching.singles.patterns import searching
from triplewire.matching.singles.runs import Evaluate, Operate, Row, Run, Slots, Test, Unknown
from triplewire.model.terms import parse_literal
from triplewire.sparql.algebra import Apply, Const, Exists, Expression, Family, Operator, Param, Var
from triplewire.sparql.compiler.functions import ONTOLOGY_FUNCTIONS, REFLEXIVE

_NUMERIC = (Family.EXACT, Family.FLOAT, Family.DOUBLE)


@dataclass(frozen=True)
class Expressions:
    """Makes the functions. Raises Unknown for what it does not know."""

    slots: Slots
    exists: Callable[[Operator], Operate]
    """What finds the solutions of a pattern in EXISTS."""

    def value(self, expression: Expression) -> Evaluate:
        match expression:
            case Var(name):
                place = self.slots.place(expression)
                return _made(place) if name in self.slots.made else _stored(place)
            case Const() | Param():
                return _stored(self.slots.place(expression))
            case Exists():
                return _truth(self.test(expression))
            case Apply("if", (condition, yes, no)):
                return _chosen(self.test(condition), self.value(yes), self.value(no))
            case Apply("coalesce", args):
                return _first([self.value(each) for each in args])
            case Apply(op) if op in _TESTS:
                return _truth(self.test(expression))
            case Apply(op, args):
                return _applied(_function(op, len(args)), [self.value(each) for each in args])

    def test(self, expression: Expression) -> Test:
        """The effective boolean value."""
        match expression:
            case Apply("&&", args):
                return conjoined([self.test(each) for each in args])
            case Apply("||", args):
                return disjoined([self.test(each) for each in args])
            case Apply("!", (inner,)):
                return _negated(self.test(inner))
            case Apply("bound", (inner,)):
                return _bound(self.value(inner))
            case Exists(inner):
                return _existing(self.exists(inner))
            case Apply("in", (left, *members)):
                return self._among(left, members)
            case Apply("not in", (left, *members)):
                return _negated(self._among(left, members))
            case Apply("regex", (given, Const(pattern), *flags)):
                return self._regex(given, pattern, flags)
            case Apply(op, (left, right)) if op in _TESTS_OF_TWO:
                return _of_two(_TESTS_OF_TWO[op], self.value(left), self.value(right))
            case Apply(op, (inner,)) if op in _TESTS_OF_ONE:
                return _of_one(_TESTS_OF_ONE[op], self.value(inner))
            case Apply(op, (lower, upper)) if op in REFLEXIVE:
                return related(op, self.value(lower), self.value(upper))
            case Apply("has", (subject, property_, object_)):
                return having(self.value(subject), self.value(property_), self.value(object_))
            case Apply(op) if op in _TESTS:
                raise Unknown(expression)
        return _of_one(effective, self.value(expression))

    def _among(self, left: Expression, members: list[Expression]) -> Test:
        """An error on the left is one, even where there is nothing to compare it with."""
        value = self.value(left)
        if not members:
            return _of_one(lambda given: None if given is None else False, value)
        return disjoined([_of_two(equals, value, self.value(each)) for each in members])

    def _regex(self, given: Expression, pattern: str, flags: list[Expression]) -> Test:
        words = [parse_literal(each.term) for each in (Const(pattern), *flags) if isinstance(each, Const)]
        search = (
            None if len(words) <= len(flags) else searching(words[0].lexical, "".join(w.lexical for w in words[1:]))
        )
        if search is None or any(each.language or not each.datatype.endswith("#string") for each in words):
            raise Unknown(pattern)

        def found(fact: Fact | None) -> bool | None:
            words = strings.worded(fact)
            return None if words is None else search(words[0])

        return _of_one(found, self.value(given))


def _stored(place: int) -> Evaluate:
    def found(_: Run, row: Row) -> Fact | None:
        term = row[place]
        return None if term is None else fact(term)

    return found


def _made(place: int) -> Evaluate:
    def found(run: Run, row: Row) -> Fact | None:
        term = row[place]
        return None if term is None else run.made.get(term) or fact(term)

    return found


def _truth(test: Test) -> Evaluate:
    return lambda run, row: boolean(test(run, row))


def _negated(test: Test) -> Test:
    def found(run: Run, row: Row) -> bool | None:
        held = test(run, row)
        return None if held is None else not held

    return found


def _bound(value: Evaluate) -> Test:
    return lambda run, row: value(run, row) is not None


def _existing(operate: Operate) -> Test:
    return lambda run, row: bool(operate(run, row))


def _of_one(test: Callable[[Fact | None], bool | None], value: Evaluate) -> Test:
    return lambda run, row: test(value(run, row))


def _of_two(test: Callable[[Fact | None, Fact | None], bool | None], left: Evaluate, right: Evaluate) -> Test:
    return lambda run, row: test(left(run, row), right(run, row))


def _chosen(condition: Test, yes: Evaluate, no: Evaluate) -> Evaluate:
    def found(run: Run, row: Row) -> Fact | None:
        held = condition(run, row)
        return None if held is None else yes(run, row) if held else no(run, row)

    return found


def _first(values: list[Evaluate]) -> Evaluate:
    return lambda run, row: next((each for value in values if (each := value(run, row)) is not None), None)


def _applied(function: Callable[..., Fact | None], values: list[Evaluate]) -> Evaluate:
    return lambda run, row: function(*[value(run, row) for value in values])


def _is(*families: Family) -> Callable[[Fact | None], bool | None]:
    """For IRIs and blank nodes, which all terms surely are or are not."""
    return lambda given: None if given is None else given.family in families


def _is_numeric(given: Fact | None) -> bool | None:
    found = numbers.numeric(given)
    return None if given is None else found is not None


def _is_literal(given: Fact | None) -> bool | None:
    return None if given is None else given.family not in (Family.IRI, Family.BLANK)


def _differs(left: Fact | None, right: Fact | None) -> bool | None:
    same = equals(left, right)
    return None if same is None else not same


_TESTS_OF_ONE: Mapping[str, Callable[[Fact | None], bool | None]] = {
    "isiri": _is(Family.IRI),
    "isblank": _is(Family.BLANK),
    "isliteral": _is_literal,
    "isnumeric": _is_numeric,
}
_TESTS_OF_TWO: Mapping[str, Callable[[Fact | None, Fact | None], bool | None]] = {
    "=": equals,
    "!=": _differs,
    **{op: partial(ordered, op) for op in ("<", "<=", ">", ">=")},
    "sameterm": same_term,
    "contains": partial(strings.matching, lambda text, part: part in text),
    "strstarts": partial(strings.matching, str.startswith),
    "strends": partial(strings.matching, str.endswith),
    "langmatches": strings.lang_matches,
}
_TESTS = frozenset(
    {*_TESTS_OF_ONE, *_TESTS_OF_TWO, *ONTOLOGY_FUNCTIONS, "regex", "&&", "||", "!", "bound", "in", "not in"}
)

_FUNCTIONS: Mapping[tuple[str, int], Callable[..., Fact | None]] = {
    ("+", 1): numbers.affirmed,
    ("-", 1): numbers.negated,
    **{(op, 2): partial(numbers.applied, op) for op in "+-*/"},
    **{(way, 1): partial(numbers.rounded, way) for way in ("abs", "ceil", "floor", "round")},
    ("str", 1): strings.str_of,
    ("lang", 1): strings.lang,
    ("datatype", 1): strings.datatype,
    ("strlen", 1): strings.strlen,
    ("ucase", 1): partial(strings.mapped, str.upper),
    ("lcase", 1): partial(strings.mapped, str.lower),
    **{(name, 1): partial(dates.part, name) for name in ("year", "month", "day", "hours", "minutes", "seconds")},
    **{(name, 1): cast for name, cast in CASTS.items()},
    ("strbefore", 2): strings.before,
    ("strafter", 2): strings.after,
    ("substr", 2): lambda given, start: strings.substr(given, start, None, counting=False),
    ("substr", 3): partial(strings.substr, counting=True),
}


def _function(op: str, count: int) -> Callable[..., Fact | None]:
    if op == "concat":
        return lambda *given: strings.concat([*given])
    if (op, count) not in _FUNCTIONS:
        raise Unknown(op)
    return _FUNCTIONS[op, count]
