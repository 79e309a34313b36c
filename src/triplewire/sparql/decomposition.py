"""Decomposition of a continuous query without windows into triple patterns, joined across events, and row steps.

Only conjunctions are taken: no answer may depend on triples that have not arrived yet, and it must be the same
whenever it is computed again. Nested groups are flattened into one list of patterns and one of steps, each in its
scope. Solutions of two groups are joined where they agree on the variables that both bind; a variable that a step
binds may have no value, so it gets another name and a step that compares. A variable that can only be one constant is
replaced by it in the patterns (constant propagation).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import Literal, NoReturn

from triplewire.model.terms import is_iri
from triplewire.sparql import algebra, traversal
from triplewire.sparql.algebra import Apply, Const, Expression, Operator, Pattern, Query, Var
from triplewire.sparql.conjunctions import Bind, Check, RowStep, UnboundedQuery, limit_scope, used_variables
from triplewire.sparql.paths import translate_path
from triplewire.sparql.rspql import Registration
from triplewire.sparql.syntax.lexer import SourceSpan, unsupported

_MOST_VALUES_ROWS = 256
"""The most rows of VALUES that become conditions: each is a part of one."""


@dataclass(frozen=True)
class FlatQuery:
    """Patterns, steps over their variables, and `tables`: rows of VALUES, of which one must agree with a solution."""

    patterns: tuple[Pattern, ...] = ()
    steps: tuple[RowStep, ...] = ()
    tables: tuple[algebra.Values, ...] = ()

    @property
    def matched(self) -> frozenset[str]:
        """Variables of patterns."""
        return frozenset().union(*(traversal.pattern_variables(each) for each in self.patterns))

    @property
    def stated(self) -> frozenset[str]:
        """Variables of tables; each must be one of a pattern, too."""
        return frozenset(name for each in self.tables for name in each.names)

    @property
    def computed(self) -> frozenset[str]:
        """Variables that steps bind."""
        return frozenset(each.name for each in self.steps if isinstance(each, Bind))

    @property
    def scope(self) -> frozenset[str]:
        return self.matched | self.stated | self.computed

    def then(self, *steps: RowStep) -> FlatQuery:
        return replace(self, steps=(*self.steps, *steps))

    def rename(self, old: str, new: str) -> FlatQuery:
        """Rename a variable that a step binds."""
        return replace(self, steps=tuple(_renamed(each, old, new) for each in self.steps))


class Flattener:
    """Flattens the operators of one query, with fresh names."""

    def __init__(self) -> None:
        self._numbers = count()

    def expand(self, reach: algebra.Reach) -> Operator:
        """Translate a sequence path into patterns."""
        return translate_path(reach, self._fresh)

    def filter(self, inner: FlatQuery, conditions: Iterable[Expression]) -> FlatQuery:
        return inner.then(*(Check(limit_scope(each, inner.scope)) for each in traversal.conjuncts(*conditions)))

    def extend(self, inner: FlatQuery, name: str, expression: Expression) -> FlatQuery:
        return inner.then(Bind(name, limit_scope(expression, inner.scope)))

    def values(self, values: algebra.Values) -> FlatQuery | None:
        """Flatten VALUES. One row is like a BIND of each variable. If there are several, at most one may agree with any
        solution: None if that is not certain, if there is no row, or if there are too many."""
        if len(values.rows) == 1:
            known = zip(values.names, values.rows[0], strict=True)
            return FlatQuery(steps=tuple(Bind(name, Const(term)) for name, term in known if term is not None))
        distinct = len(set(values.rows)) == len(values.rows) and not any(None in row for row in values.rows)
        return FlatQuery(tables=(values,)) if distinct and 0 < len(values.rows) <= _MOST_VALUES_ROWS else None

    def join(self, left: FlatQuery, right: FlatQuery) -> FlatQuery:
        """Join two groups on the variables that both bind."""
        compared: list[RowStep] = []
        for name in sorted((left.computed & right.scope) | (right.computed & left.scope)):
            left, one = self._parted(left, name)
            right, other = self._parted(right, name)
            compared.append(Check(_agree(_known(left, one), _known(right, other))))
            if name not in (one, other):
                compared.append(Bind(name, Apply("coalesce", (Var(one), Var(other)))))
        return FlatQuery(
            (*left.patterns, *right.patterns), (*left.steps, *right.steps, *compared), (*left.tables, *right.tables)
        )

    def _parted(self, flat: FlatQuery, name: str) -> tuple[FlatQuery, str]:
        """Give a variable that a step binds a fresh name; that of patterns stays."""
        if name not in flat.computed:
            return flat, name
        new = self._fresh().name
        return flat.rename(name, new), new

    def _fresh(self) -> Var:
        return Var(f".u{next(self._numbers)}")


def _known(flat: FlatQuery, name: str) -> Expression:
    """Return the variable, or the constant that it is bound to."""
    made = [each.expression for each in flat.steps if isinstance(each, Bind) and each.name == name]
    return made[0] if made and isinstance(made[0], Const) else Var(name)


def _agree(left: Expression, right: Expression) -> Expression:
    """Return the condition that both are the same term, or one is unbound."""
    same = Apply("sameterm", (left, right))
    open_ = tuple(Apply("!", (Apply("bound", (each,)),)) for each in (left, right) if _may_lack(each))
    return Apply("||", (*open_, same)) if open_ else same


def _may_lack(expression: Expression) -> bool:
    """Tell whether an expression may be unbound: only renamed variables of steps may."""
    return isinstance(expression, Var) and expression.name.startswith(".u")


def _renamed(step: RowStep, old: str, new: str) -> RowStep:
    def rename(expression: Expression) -> Expression:
        return traversal.map_variables(expression, lambda variable: Var(new) if variable.name == old else variable)

    if isinstance(step, Check):
        return Check(rename(step.condition))
    return Bind(new if step.name == old else step.name, rename(step.expression))


PatternsAndSteps = tuple[tuple[Pattern, ...], tuple[RowStep, ...]]


def propagate_constants(flat: FlatQuery) -> PatternsAndSteps:
    """Replace variables that can only be one constant by it in the patterns; the first steps bind them."""
    known: dict[str, Const] = {}
    kept: list[RowStep] = []
    for step in (*(Check(_among(each)) for each in flat.tables), *flat.steps):
        found = traversal.required_constant(step.condition) if isinstance(step, Check) else None
        if found is None or found[0] in known or not _accepts_constant(flat.patterns, *found):
            kept.append(step)
        else:
            known[found[0]] = found[1]
    first = (Bind(name, constant) for name, constant in known.items())
    return tuple(traversal.substitute_constants(each, known) for each in flat.patterns), tuple(
        _drop_unused([*first, *kept])
    )


def _accepts_constant(patterns: Iterable[Pattern], name: str, constant: Const) -> bool:
    """Tell whether a pattern has the variable, and allows the constant in all of its positions."""
    positions = {
        position
        for each in patterns
        for position in ("subject", "predicate", "object")
        if getattr(each, position) == Var(name)
    }
    stated = is_iri(constant.term) or positions == {"object"}
    return bool(positions) and stated and not ("predicate" in positions and constant.term in algebra.HEADER_PREDICATES)


def _among(table: algebra.Values) -> Expression:
    """Return the condition that a solution agrees with one of the rows."""
    terms = [Const(row[0] or "") for row in table.rows]
    if len(table.names) == 1 and all(is_iri(each.term) for each in terms):
        return Apply("in", (Var(table.names[0]), *terms))
    return Apply("||", tuple(_row(table.names, row) for row in table.rows))


def _row(names: tuple[str, ...], row: tuple[str | None, ...]) -> Expression:
    cells = zip(names, row, strict=True)
    return Apply("&&", tuple(Apply("sameterm", (Var(name), Const(term or ""))) for name, term in cells))


def _drop_unused(steps: list[RowStep]) -> list[RowStep]:
    """Drop generated variables that no step uses."""
    used = frozenset().union(*(used_variables(each) for each in steps))
    return [each for each in steps if isinstance(each, Check) or not each.name.startswith(".") or each.name in used]


WINDOW_HINT = "in a window it is: FROM NAMED WINDOW <w> ON <stream> [RANGE PT10M] WHERE { WINDOW <w> { ... } }"
"""The hint of refusals."""

_REFUSED: dict[type[Operator], str] = {
    algebra.LeftJoin: "OPTIONAL",
    algebra.Union: "UNION",
    algebra.Minus: "MINUS",
    algebra.Graph: "GRAPH",
    algebra.Window: "WINDOW",
    algebra.Service: "SERVICE in a continuous query",
    algebra.Select: "a sub-query",
}
_FORMS: dict[str, Literal["select", "ask", "construct"]] = {"select": "select", "ask": "ask", "construct": "construct"}


def split_unbounded(asked: Registration | Query) -> UnboundedQuery:
    """Decompose a query that is evaluated without windows.

    Raises Unsupported for anything but a conjunction, naming the construct, and, for a registration, its position.
    """
    query, spans = (asked.query, asked.spans) if isinstance(asked, Registration) else (asked, ())
    split = _Decomposer(spans)
    form = _FORMS.get(query.form)
    if form is None:
        split.refuse(query.form.upper())
    if query.dataset != algebra.Dataset():
        split.refuse("FROM")
    select = query.where if isinstance(query.where, algebra.Select) else algebra.Select(query.where, query.projection)
    split.check_modifiers(select)
    flat = split.flat(select.inner)
    if not flat.patterns:
        split.refuse("a query without a triple pattern")
    if not flat.stated <= flat.matched:
        split.refuse("VALUES")
    patterns, steps = propagate_constants(flat)
    return UnboundedQuery(form, patterns, steps, query.projection, select.distinct, query.template)


class _Decomposer:
    """A decomposition of one query; raises Unsupported for what it cannot decompose."""

    def __init__(self, spans: Iterable[SourceSpan]) -> None:
        self._spans = tuple(spans)
        self._flattener = Flattener()

    def refuse(self, construct: str) -> NoReturn:
        raise unsupported(construct, self._spans, WINDOW_HINT)

    def check_modifiers(self, select: algebra.Select) -> None:
        for given, construct in (
            (select.order, "ORDER BY"),
            (select.limit is not None, "LIMIT"),
            (select.offset, "OFFSET"),
        ):
            if given:
                self.refuse(construct)

    def flat(self, operator: Operator) -> FlatQuery:
        match operator:
            case algebra.Basic(patterns):
                return FlatQuery(self._stored(patterns))
            case algebra.Reach():
                self._check_path(operator.path)
                return self.flat(self._flattener.expand(operator))
            case algebra.Join(left, right):
                return self._flattener.join(self.flat(left), self.flat(right))
            case algebra.Filter(inner, conditions):
                return self._flattener.filter(self.flat(inner), map(self._plain, conditions))
            case algebra.Extend(inner, name, expression):
                return self._flattener.extend(self.flat(inner), name, self._plain(expression))
            case algebra.Values():
                found = self._flattener.values(operator)
                return self.refuse("VALUES") if found is None else found
            case algebra.Group(_, keys, aggregates):
                self.refuse("GROUP BY" if keys else f"aggregate {aggregates[0][1].op.upper()}")
        self.refuse(_REFUSED.get(type(operator), type(operator).__name__))

    def _stored(self, patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
        for each in patterns:
            if isinstance(each.predicate, Const) and each.predicate.term in algebra.HEADER_PREDICATES:
                self.refuse(f"predicate {each.predicate.term}")
        return patterns

    def _check_path(self, path: algebra.Path) -> None:
        match path:
            case algebra.Link(predicate):
                self._stored((Pattern(predicate, predicate, predicate),))
            case algebra.Inverse(inner):
                self._check_path(inner)
            case algebra.Chain(paths):
                for each in paths:
                    self._check_path(each)
            case algebra.Either():
                self.refuse("path `|`")
            case algebra.Repeat(_, least, once):
                self.refuse(f"path `{'?' if once else '+' if least else '*'}`")
            case algebra.Negated():
                self.refuse("path `!`")

    def _plain(self, expression: Expression) -> Expression:
        """Return the expression. Raises Unsupported if its value depends on more than the solution."""
        match expression:
            case algebra.Exists():
                self.refuse("EXISTS")
            case Apply(op) if op in algebra.VOLATILE or op == "now":
                self.refuse(f"function {op.upper()}")
            case Apply(_, args):
                for each in args:
                    self._plain(each)
        return expression
