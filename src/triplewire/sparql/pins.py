"""Pins: variables that can be one constant alone. It stands in the patterns, where it is looked up, not compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from triplewire.model.terms import is_iri
from triplewire.sparql.algebra import Apply, Const, Expression, Node, Pattern, Values, Var
from triplewire.sparql.compile.scans import VIRTUAL
from triplewire.sparql.flattening import Flat
from triplewire.sparql.unbounded import Bind, Check, RowStep, used_by

Split = tuple[tuple[Pattern, ...], tuple[RowStep, ...]]


def pinned(flat: Flat) -> Split:
    """Patterns and steps of the same solutions, of which the first steps bind what is a constant in the patterns."""
    known: dict[str, Const] = {}
    kept: list[RowStep] = []
    for step in (*(Check(_among(each)) for each in flat.tables), *flat.steps):
        found = _named(step)
        if found is None or found[0] in known or not _takes(flat.patterns, *found):
            kept.append(step)
        else:
            known[found[0]] = found[1]
    first = (Bind(name, constant) for name, constant in known.items())
    return tuple(_put(each, known) for each in flat.patterns), tuple(_used([*first, *kept]))


def _named(step: RowStep) -> tuple[str, Const] | None:
    """The variable and the term that it must be. IRIs are equal only if they are the same; other terms are not."""
    match step:
        case Check(Apply("sameterm" | "=" as op, (Var(name), Const() as constant) | (Const() as constant, Var(name)))):
            return (name, constant) if op == "sameterm" or is_iri(constant.term) else None
    return None


def _takes(patterns: Iterable[Pattern], name: str, constant: Const) -> bool:
    """Has a pattern the variable, and may it be the constant in every place?"""
    places = {
        place for each in patterns for place in ("subject", "predicate", "object") if getattr(each, place) == Var(name)
    }
    stated = is_iri(constant.term) or places == {"object"}
    return bool(places) and stated and not ("predicate" in places and constant.term in VIRTUAL)


def _put(pattern: Pattern, known: Mapping[str, Const]) -> Pattern:
    def put(node: Node) -> Node:
        return known.get(node.name, node) if isinstance(node, Var) else node

    return replace(
        pattern,
        subject=put(pattern.subject),
        predicate=put(pattern.predicate),
        object=put(pattern.object),
    )


def _among(table: Values) -> Expression:
    """Does a solution agree with one of the rows?"""
    terms = [Const(row[0] or "") for row in table.rows]
    if len(table.names) == 1 and all(is_iri(each.term) for each in terms):
        return Apply("in", (Var(table.names[0]), *terms))
    return Apply("||", tuple(_row(table.names, row) for row in table.rows))


def _row(names: tuple[str, ...], row: tuple[str | None, ...]) -> Expression:
    cells = zip(names, row, strict=True)
    return Apply("&&", tuple(Apply("sameterm", (Var(name), Const(term or ""))) for name, term in cells))


def _used(steps: list[RowStep]) -> list[RowStep]:
    """Without values under names of ours that nobody looks at."""
    used = frozenset().union(*(used_by(each) for each in steps))
    return [each for each in steps if isinstance(each, Check) or not each.name.startswith(".") or each.name in used]
