"""Conditions: filters as SQL, with an error as NULL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from triplewire.model.errors import Unsupported
from triplewire.sparql.algebra import Apply, Const, Exists, Expression, Family, Param, Var
from triplewire.sparql.compile.addresses import blank
from triplewire.sparql.compile.choices import either, first
from triplewire.sparql.compile.columns import Stored
from triplewire.sparql.compile.comparisons import holds_equal, holds_ordered
from triplewire.sparql.compile.computed import Truth
from triplewire.sparql.compile.functions import FUNCTIONS, NAMING, VOLATILE, effective, held
from triplewire.sparql.compile.lets import Lets
from triplewire.sparql.compile.sql import Sql, among, every, negate, some
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
    exists: Callable[[Exists], Sql] | None = None
    """Whether a pattern has a solution here."""
    now: Value = field(default_factory=Value)
    blanks: Sql | None = None
    """What tells solutions apart, for the blank nodes that they make."""

    def value(self, expression: Expression) -> Value:
        """The value of any expression; variables that are bound to nothing are errors."""
        match expression:
            case Var(name):
                return self.values.get(name, Value())
            case Const(term):
                return Known(static(term))
            case Param():
                return parameter(expression, plain=self.plain)
            case Apply("&&" | "||" | "!" | "bound") | Exists():
                return Truth(self.truth(expression))
            case Apply("now"):
                return self.now
            case Apply("if", (condition, yes, no)):
                return either(self.truth(condition), self.value(yes), self.value(no), self.lets.bind)
            case Apply("coalesce", args):
                return first([self._held(each) for each in args], self.lets.bind)
            case Apply("bnode", (label,)):
                return blank(self.lets.bind, self._held(label), self.blanks)
            case Apply(op, args):
                return self._applied(op, args)

    def _applied(self, op: str, args: tuple[Expression, ...]) -> Value:
        if op in FUNCTIONS:
            return FUNCTIONS[op](*(self._lean(each) for each in args))
        if op in NAMING:
            return NAMING[op](self.lets.bind, *(self._held(each) for each in args))
        if op in VOLATILE and not args:
            return VOLATILE[op](self.lets.bind, len(self.lets.values))
        raise Unsupported(op.upper())

    def _held(self, expression: Expression) -> Value:
        return held(self.value(expression), self.lets.bind)

    def _lean(self, expression: Expression) -> Value:
        """Conditions inside of others are named, because they grow with each operator around them."""
        found = self.value(expression)
        return held(found, self.lets.bind) if isinstance(found, Truth) else found

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
                return self._among(left, members)
            case Apply("=", (left, right)):
                return self._equal(left, right)
            case Apply("<" | "<=" | ">" | ">=", (left, right)):
                return self._ordered(expression.op, left, right)
        return self.truth(expression)

    def _among(self, left: Expression, members: list[Expression]) -> Sql:
        """Terms that equal only themselves are looked for all at once."""
        texts = [each.term for each in members if isinstance(each, Const) and static(each.term).family in _THEMSELVES]
        rest = [each for each in members if not (isinstance(each, Const) and each.term in texts)]
        together = [among(self.value(left).text(), texts)] if len(texts) > 1 else []
        return some(*together, *(self._equal(left, each) for each in (rest if together else members)))

    def _equal(self, left: Expression, right: Expression) -> Sql:
        return holds_equal(self.value(left), self.value(right))

    def _ordered(self, op: str, left: Expression, right: Expression) -> Sql:
        """With the constant on the right, where bounds are looked for."""
        if isinstance(left, Const | Param):
            left, right, op = right, left, op.translate(_MIRROR)
        return holds_ordered(op, self.value(left), self.value(right))


_THEMSELVES = frozenset({Family.IRI, Family.STRING})
_MIRROR = str.maketrans("<>", "><")


def parameter(node: Param, *, plain: bool = False) -> Value:
    """A constant of the table of constants, of the family that the parameter states."""
    return Stored(CONSTANTS, f"k{node.index}", frozenset({node.family}) if node.family else ANY, short=plain)
