"""Conditions: filters as SQL, with an error as NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from triplewire.errors import Unsupported
from triplewire.sparql.algebra import Apply, Const, Exists, Expression, Param, Var
from triplewire.sparql.compile.arithmetic import arithmetic
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.comparisons import holds_equal, holds_ordered
from triplewire.sparql.compile.computed import Truth
from triplewire.sparql.compile.functions import FUNCTIONS, effective
from triplewire.sparql.compile.plans import Lets
from triplewire.sparql.compile.sql import Sql, every, negate, some
from triplewire.sparql.compile.statics import Known, static
from triplewire.sparql.compile.values import ANY, Value

CONSTANTS = "c"
"""The alias of the relation `constants`."""


@dataclass(frozen=True)
class Scope:
    """What the variables of a query are bound to."""

    values: Mapping[str, Value] = field(default_factory=dict)
    lets: Lets = field(default_factory=Lets)
    plain: bool = False
    """All numbers are such that doubles tell them apart."""

    def value(self, expression: Expression) -> Value:
        """The value of any expression; variables that are bound to nothing are errors."""
        match expression:
            case Var(name):
                return self.values.get(name, Value())
            case Const(term):
                return Known(static(term))
            case Param():
                return parameter(expression, plain=self.plain)
            case Apply("&&" | "||" | "!" | "bound"):
                return Truth(self.truth(expression))
            case Apply("+" | "-" | "*" | "/", args):
                return arithmetic(expression.op, [self.value(each) for each in args], self.lets.bind)
            case Apply(op, args):
                return _function(op)(*(self.value(each) for each in args))
            case Exists():
                raise Unsupported("EXISTS")

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
        found = self.value(expression)
        return found.condition if isinstance(found, Truth) else effective(found)

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
                return some(*(self._equal(left, member) for member in members))
            case Apply("=", (left, right)):
                return self._equal(left, right)
            case Apply("<" | "<=" | ">" | ">=", (left, right)):
                return self._ordered(expression.op, left, right)
        return self.truth(expression)

    def _equal(self, left: Expression, right: Expression) -> Sql:
        return holds_equal(self.value(left), self.value(right))

    def _ordered(self, op: str, left: Expression, right: Expression) -> Sql:
        """With the constant on the right, where bounds are looked for."""
        if isinstance(left, Const | Param):
            left, right, op = right, left, op.translate(_MIRROR)
        return holds_ordered(op, self.value(left), self.value(right))


_MIRROR = str.maketrans("<>", "><")


def parameter(node: Param, *, plain: bool = False) -> Value:
    """A constant of the table of constants, of the family that the parameter states."""
    return Stored(CONSTANTS, f"k{node.index}", frozenset({node.family}) if node.family else ANY, short=plain)


def _function(op: str) -> Callable[..., Value]:
    if op not in FUNCTIONS:
        raise Unsupported(op.upper())
    return FUNCTIONS[op]
