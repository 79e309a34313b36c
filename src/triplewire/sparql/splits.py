"""Splits: a query taken apart into triple patterns, which are joined across events, and steps over their variables.

Only conjunctions are: whether an answer stands must not depend on triples that are not there yet, and it is the same
whenever it is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NoReturn

from triplewire.sparql.algebra import (
    VOLATILE,
    Aggregate,
    Apply,
    Basic,
    Chain,
    Const,
    Dataset,
    Either,
    Exists,
    Expression,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Link,
    Minus,
    Negated,
    Operator,
    Path,
    Pattern,
    Query,
    Reach,
    Repeat,
    Select,
    Service,
    Union,
    Values,
    Window,
)
from triplewire.sparql.compile.scans import VIRTUAL
from triplewire.sparql.flattening import Flat, Flattening
from triplewire.sparql.marks import Mark, unsupported
from triplewire.sparql.pins import pinned
from triplewire.sparql.registrations import Registration
from triplewire.sparql.unbounded import Unbounded

WITHIN = "in a window it is: FROM NAMED WINDOW <w> ON <stream> [RANGE PT10M] WHERE { WINDOW <w> { ... } }"
"""What would be right."""

_REFUSED: dict[type[Operator], str] = {
    LeftJoin: "OPTIONAL",
    Union: "UNION",
    Minus: "MINUS",
    Graph: "GRAPH",
    Window: "WINDOW",
    Service: "SERVICE in a continuous query",
    Select: "a sub-query",
}
_FORMS: dict[str, Literal["select", "ask", "construct"]] = {"select": "select", "ask": "ask", "construct": "construct"}


def split_unbounded(asked: Registration | Query) -> Unbounded:
    """The pieces of a query that is answered without windows.

    Raises Unsupported for whatever is more than a conjunction, by name, and, of a registration, with its place.
    """
    query, marks = (asked.query, asked.marks) if isinstance(asked, Registration) else (asked, ())
    split = _Split(marks)
    form = _FORMS.get(query.form)
    if form is None:
        split.refuse(query.form.upper())
    if query.dataset != Dataset():
        split.refuse("FROM")
    select = query.where if isinstance(query.where, Select) else Select(query.where, query.projection)
    split.check_modifiers(select)
    flat = split.flat(select.inner)
    if not flat.patterns:
        split.refuse("a query without a triple pattern")
    if not flat.stated <= flat.matched:
        split.refuse("VALUES")
    patterns, steps = pinned(flat)
    return Unbounded(form, patterns, steps, query.projection, select.distinct, query.template)


class _Split:
    """Takes one query apart, or refuses it."""

    def __init__(self, marks: Iterable[Mark]) -> None:
        self._marks = tuple(marks)
        self._flattening = Flattening()

    def refuse(self, construct: str) -> NoReturn:
        raise unsupported(construct, self._marks, WITHIN)

    def check_modifiers(self, select: Select) -> None:
        for given, construct in (
            (select.order, "ORDER BY"),
            (select.limit is not None, "LIMIT"),
            (select.offset, "OFFSET"),
        ):
            if given:
                self.refuse(construct)

    def flat(self, operator: Operator) -> Flat:
        match operator:
            case Basic(patterns):
                return Flat(self._stored(patterns))
            case Reach():
                self._check_path(operator.path)
                return self.flat(self._flattening.expanded(operator))
            case Join(left, right):
                return self._flattening.joined(self.flat(left), self.flat(right))
            case Filter(inner, conditions):
                return self._flattening.filtered(self.flat(inner), map(self._plain, conditions))
            case Extend(inner, name, expression):
                return self._flattening.extended(self.flat(inner), name, self._plain(expression))
            case Values():
                found = self._flattening.stated(operator)
                return self.refuse("VALUES") if found is None else found
            case Group(_, keys, aggregates):
                self.refuse("GROUP BY" if keys else f"aggregate {_first(aggregates).op.upper()}")
        self.refuse(_REFUSED.get(type(operator), type(operator).__name__))

    def _stored(self, patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
        for each in patterns:
            if isinstance(each.predicate, Const) and each.predicate.term in VIRTUAL:
                self.refuse(f"predicate {each.predicate.term}")
        return patterns

    def _check_path(self, path: Path) -> None:
        match path:
            case Link(predicate):
                self._stored((Pattern(predicate, predicate, predicate),))
            case Inverse(inner):
                self._check_path(inner)
            case Chain(paths):
                for each in paths:
                    self._check_path(each)
            case Either():
                self.refuse("path `|`")
            case Repeat(_, least, once):
                self.refuse(f"path `{'?' if once else '+' if least else '*'}`")
            case Negated():
                self.refuse("path `!`")

    def _plain(self, expression: Expression) -> Expression:
        """The expression, whose value is the same each time and depends on the solution alone."""
        match expression:
            case Exists():
                self.refuse("EXISTS")
            case Apply(op) if op in VOLATILE or op == "now":
                self.refuse(f"function {op.upper()}")
            case Apply(_, args):
                for each in args:
                    self._plain(each)
        return expression


def _first(aggregates: tuple[tuple[str, Aggregate], ...]) -> Aggregate:
    return aggregates[0][1]
