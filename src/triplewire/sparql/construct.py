"""CONSTRUCT on one event or in a window: the SELECT that its template needs, and the graph that solutions make.

The template is filled in when solutions are expanded. Blank nodes of the template become skolem IRIs, as those of
events do: one for each label, solution and graph, and the same one whenever the graph is built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from hashlib import blake2b
from urllib.parse import quote

from triplewire.model.errors import Unsupported
from triplewire.model.terms import GENID, iri, is_iri
from triplewire.sparql.algebra import Apply, Const, Expression, Filter, Node, Param, Pattern, Query, Select, Var
from triplewire.sparql.compiler.subscriptions import required_patterns
from triplewire.sparql.paths import Triple
from triplewire.sparql.traversal import bound_variables, certain_variables, pattern_variables


def construct_to_select(query: Query) -> Query:
    """Return a SELECT that has a solution exactly if the graph of the CONSTRUCT is not empty.

    Solutions that make no triple may be among the others. Raises Unsupported if none could ever make one.
    """
    select = query.where
    assert isinstance(select, Select)
    names = tuple(name for name in query.projection if name in bound_variables(select.inner))
    condition = _fruitful(query.template, select)
    if select.limit is not None or select.offset:
        sliced = replace(select, projection=names)
        where = sliced if condition is None else Select(Filter(sliced, (condition,)), names)
    else:
        inner = select.inner if condition is None else Filter(select.inner, (condition,))
        where = Select(inner, names, distinct=not any(map(_fresh, query.template)))
    return Query("select", where, names)


def build_graph(
    template: Sequence[Pattern], constants: Sequence[str], solutions: Iterable[Mapping[str, str | None]], name: str
) -> list[Triple]:
    """Build the graph: each triple once, invalid ones left out. `name` identifies the graph, for its blank nodes."""
    key = blake2b(name.encode(), digest_size=12).hexdigest()
    filled = (
        tuple(_term(node, constants, solution, f"{key}:{number}") for node in pattern.triple)
        for number, solution in enumerate(solutions)
        for pattern in template
    )
    return [(s, p, o) for s, p, o in dict.fromkeys(filled) if s and p and o and is_iri(s) and is_iri(p)]


def _term(node: Node, constants: Sequence[str], solution: Mapping[str, str | None], key: str) -> str | None:
    match node:
        case Const(term):
            return term
        case Param(index):
            return constants[index]
        case Var(name) if _is_blank(name):
            return iri(f"{GENID}{key}:{quote(name[2:], safe='')}")
        case Var(name):
            return solution.get(name)


def _is_blank(name: str) -> bool:
    return name.startswith("_:")


def _fresh(pattern: Pattern) -> bool:
    """Tell whether a pattern makes another triple of each solution, even of a repeated one."""
    return any(map(_is_blank, pattern_variables(pattern)))


def _fruitful(template: Sequence[Pattern], select: Select) -> Expression | None:
    """Return the condition under which a solution makes a triple; None if each does."""
    possible = bound_variables(select.inner)
    needs = [
        _needs(pattern, select)
        for pattern in template
        if all(_is_blank(name) or name in possible for name in pattern_variables(pattern))
    ]
    if not needs:
        hint = "a triple of its template needs variables that stand in its pattern"
        raise Unsupported("CONSTRUCT without a triple", hint=hint)
    if not all(needs):
        return None
    return _connect("||", [_connect("&&", each) for each in needs])


def _connect(op: str, conditions: Sequence[Expression]) -> Expression:
    return reduce(lambda left, right: Apply(op, (left, right)), conditions)


def _needs(pattern: Pattern, select: Select) -> list[Expression]:
    """Return the conditions, beside those that always hold, under which a solution makes a triple of the pattern."""
    resources = _resources(select)
    conditions: list[Expression] = [
        Apply("isiri", (node,))
        for node in (pattern.subject, pattern.predicate)
        if isinstance(node, Var) and not _is_blank(node.name) and node.name not in resources
    ]
    value = pattern.object
    if isinstance(value, Var) and not _is_blank(value.name) and value.name not in certain_variables(select.inner):
        conditions.append(Apply("bound", (value,)))
    return conditions


def _resources(select: Select) -> frozenset[str]:
    """Variables that are IRIs in every solution: subjects, predicates and graphs of quads that it needs."""
    nodes = (node for each in required_patterns(select) for node in (each.subject, each.predicate, each.graph))
    return frozenset(node.name for node in nodes if isinstance(node, Var)) & bound_variables(select.inner)
