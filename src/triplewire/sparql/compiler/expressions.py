"""Expressions as SQL within a scope that binds variables to values; an error is NULL. IF and COALESCE are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from triplewire.model.errors import Unsupported
from triplewire.sparql.algebra import Apply, Const, Exists, Expression, Family, Param, Var
from triplewire.sparql.compiler import functions
from triplewire.sparql.compiler.arithmetic import BindSql
from triplewire.sparql.compiler.comparisons import holds_equal, holds_ordered
from triplewire.sparql.compiler.relations import Lets
from triplewire.sparql.compiler.strings import labelled_blank_node
from triplewire.sparql.compiler.terms import ConstantValue, DerivedTerm, StoredTerm
from triplewire.sparql.compiler.values import (
    ANY,
    ComputedBoolean,
    ComputedNumber,
    ComputedString,
    Value,
    facet_of,
    tagged_string,
)
from triplewire.sparql.constants import parse_constant
from triplewire.sparql.sql import Sql, among, case, every, is_false, is_true, negate, some


@dataclass(frozen=True)
class Choice:
    """Values, each with the condition under which it is taken if none before it is."""

    branches: Sequence[tuple[Sql, Value]]

    def choose(self, answer: Callable[[Value], Sql]) -> Sql:
        return case(*((condition, answer(value)) for condition, value in self.branches))

    def value(self, bind: BindSql) -> Value:
        """Merge the branches into one value: a computed value if all branches are of one kind, else a term with
        facets."""
        values = [value for _, value in self.branches if value.families]
        families = frozenset[Family]().union(*(value.families for value in values))
        if not values:
            return Value()
        if families == {Family.BOOLEAN}:
            return ComputedBoolean(bind(self.choose(lambda each: each.boolean())))
        if all(isinstance(value, ComputedString) for value in values):
            return tagged_string(
                bind(self.choose(lambda each: each.string())), bind(self.choose(lambda each: each.language()))
            )
        if all(isinstance(value, ComputedNumber) for value in values):
            return self._number(bind, families)
        made = bind(self.choose(lambda each: each.text()))
        return DerivedTerm(
            families=families, made=made, facet_sql=lambda name: bind(self.choose(partial(facet_of, name=name)))
        )

    def _number(self, bind: BindSql, families: frozenset[Family]) -> Value:
        rank = bind(self.choose(lambda each: each.rank()))
        exact = bind(self.choose(lambda each: each.exact()))
        return ComputedNumber(rank, exact, bind(self.choose(lambda each: each.number())), families)


def if_else(condition: Sql, yes: Value, no: Value, bind: BindSql) -> Value:
    """Compile IF: an error in the condition is an error; one in the branch that is not taken is not."""
    held = bind(condition)
    return Choice(((held, yes), (negate(held), no))).value(bind)


def coalesce_values(values: Sequence[Value], bind: BindSql) -> Value:
    """Compile COALESCE: the first argument that is not an error."""
    branches = []
    for value in values:
        bound = value.bound()
        if not is_false(bound) and value.families:
            branches.append((bound, value))
        if is_true(bound):
            break
    return Choice(tuple(branches)).value(bind) if branches else Value()


CONSTANTS_ALIAS = "c"
"""The alias of the relation `constants`."""


@dataclass(frozen=True)
class ExpressionScope:
    """The variables of a query, bound to values."""

    values: Mapping[str, Value] = field(default_factory=dict)
    lets: Lets = field(default_factory=Lets)
    plain: bool = False
    """Whether doubles distinguish all numbers."""
    exists: Callable[[Exists], Sql] | None = None
    """The condition that the pattern of an EXISTS has a solution."""
    now: Value = field(default_factory=Value)
    blanks: Sql | None = None
    """The value that identifies a solution, for the blank nodes that BNODE(label) creates."""

    def value(self, expression: Expression) -> Value:
        """The value of any expression; variables that are bound to nothing are errors."""
        match expression:
            case Var(name):
                return self.values.get(name, Value())
            case Const(term):
                return ConstantValue(parse_constant(term))
            case Param():
                return parameter_value(expression, plain=self.plain)
            case Apply("&&" | "||" | "!" | "bound") | Exists():
                return ComputedBoolean(self.truth(expression))
            case Apply("now"):
                return self.now
            case Apply("if", (condition, yes, no)):
                return if_else(self.truth(condition), self.value(yes), self.value(no), self.lets.bind)
            case Apply("coalesce", args):
                return coalesce_values([self._held(each) for each in args], self.lets.bind)
            case Apply("bnode", (label,)):
                return labelled_blank_node(self.lets.bind, self._held(label), self.blanks)
            case Apply(op, args):
                return self._applied(op, args)

    def _applied(self, op: str, args: tuple[Expression, ...]) -> Value:
        if op in functions.FUNCTIONS:
            return functions.FUNCTIONS[op](*(self._lean(each) for each in args))
        if op in functions.BINDING_FUNCTIONS:
            return functions.BINDING_FUNCTIONS[op](self.lets.bind, *(self._held(each) for each in args))
        if op in functions.VOLATILE_FUNCTIONS and not args:
            return functions.VOLATILE_FUNCTIONS[op](self.lets.bind, len(self.lets.values))
        raise Unsupported(op.upper())

    def _held(self, expression: Expression) -> Value:
        return functions.bind_value(self.value(expression), self.lets.bind)

    def _lean(self, expression: Expression) -> Value:
        """Bind nested conditions, because they grow with each operator around them."""
        found = self.value(expression)
        return functions.bind_value(found, self.lets.bind) if isinstance(found, ComputedBoolean) else found

    def truth(self, expression: Expression) -> Sql:
        """TRUE, FALSE or NULL: the effective boolean value of an expression."""
        match expression:
            case Apply("&&", args):
                return every(*(self.truth(each) for each in args))
            case Apply("||", args):
                return some(*(self.truth(each) for each in args))
            case Apply("!", (inner,)):
                return negate(self.truth(inner))
            case Apply("bound", (inner,)):
                return self.value(inner).bound()
            case Exists():
                if self.exists is None:
                    raise Unsupported("EXISTS")
                return self.exists(expression)
        found = self.value(expression)
        return found.condition if isinstance(found, ComputedBoolean) else functions.effective_boolean(found)

    def holds(self, expression: Expression) -> Sql:
        """TRUE exactly where the filter is true; elsewhere FALSE or NULL, which a WHERE does not tell apart.

        That freedom keeps the common filters simple comparisons of columns.
        """
        match expression:
            case Apply("&&", args):
                return every(*(self.holds(each) for each in args))
            case Apply("||", args):
                return some(*(self.holds(each) for each in args))
            case Apply("in", (left, *members)):
                return self._among(left, members)
            case Apply("=", (left, right)):
                return self._equal(left, right)
            case Apply("<" | "<=" | ">" | ">=", (left, right)):
                return self._ordered(expression.op, left, right)
        return self.truth(expression)

    def _among(self, left: Expression, members: list[Expression]) -> Sql:
        """Compile IN; constants that equal only themselves are compared together."""
        texts = [
            each.term for each in members if isinstance(each, Const) and parse_constant(each.term).family in _THEMSELVES
        ]
        rest = [each for each in members if not (isinstance(each, Const) and each.term in texts)]
        together = [among(self.value(left).text(), texts)] if len(texts) > 1 else []
        return some(*together, *(self._equal(left, each) for each in (rest if together else members)))

    def _equal(self, left: Expression, right: Expression) -> Sql:
        return holds_equal(self.value(left), self.value(right))

    def _ordered(self, op: str, left: Expression, right: Expression) -> Sql:
        """Put the constant on the right, where scan analysis looks for bounds."""
        if isinstance(left, Const | Param):
            left, right, op = right, left, op.translate(_MIRROR)
        return holds_ordered(op, self.value(left), self.value(right))


_THEMSELVES = frozenset({Family.IRI, Family.STRING})
_MIRROR = str.maketrans("<>", "><")


def parameter_value(node: Param, *, plain: bool = False) -> Value:
    """A constant of the table of constants, of the family that the parameter states."""
    return StoredTerm(CONSTANTS_ALIAS, f"k{node.index}", frozenset({node.family}) if node.family else ANY, short=plain)
