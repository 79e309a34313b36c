"""Serialization of the algebra: a pretty printer, an explain tree as JSON, and a lossless JSON form.

`algebra_from_json` reads only values that the same version of `algebra_to_json` wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Expression, Family, Node, Operator, Pattern, Var
from triplewire.sparql.conjunctions import Bind, Check, Conjunction
from triplewire.sparql.traversal import child_operators

_INFIX = frozenset({"=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "&&", "||"})
_ROWS_SHOWN = 3
Tree = TypeVar("Tree")


def format_tree(
    node: Tree, lines: Callable[[Tree], Iterable[str]], children: Callable[[Tree], Iterable[Tree]], depth: int = 0
) -> Iterator[str]:
    """Lay out any tree as text: the lines of each node, then its children, two spaces further in."""
    yield from (f"{'  ' * depth}{line}" for line in lines(node))
    for each in children(node):
        yield from format_tree(each, lines, children, depth + 1)


def format_algebra(operator: Operator) -> str:
    return "\n".join(format_tree(operator, _operator_lines, lambda each: child_operators(each).values()))


def describe_algebra(operator: Operator) -> dict[str, Any]:
    """Return the tree as a JSON value: each operator with its details (`says`) and its children (`inside`)."""
    return {
        "operator": type(operator).__name__,
        "says": operator_details(operator),
        "inside": [*map(describe_algebra, child_operators(operator).values())],
    }


def _operator_lines(operator: Operator) -> Iterator[str]:
    name = type(operator).__name__
    first, *rest = operator_details(operator) or [""]
    yield f"{name} {first}".rstrip()
    yield from (f"{' ' * len(name)} {line}" for line in rest)


def operator_details(operator: Operator) -> list[str]:
    """Return a line of text for each pattern, condition or expression of an operator's own."""
    match operator:
        case algebra.Basic(patterns):
            return [pattern_text(each) for each in patterns]
        case algebra.Reach(subject, path, object_):
            return [f"{node_text(subject)} {path_text(path)} {node_text(object_)}"]
        case algebra.LeftJoin(conditions=conditions) | algebra.Filter(conditions=conditions):
            return [expression_text(each) for each in conditions]
        case algebra.Extend(_, name, expression):
            return [f"?{name} := {expression_text(expression)}"]
        case algebra.Graph(name):
            return [node_text(name)]
        case algebra.Window(name):
            return [f"<{name}>"]
        case algebra.Values(names, rows):
            return [_values(names, rows)]
        case algebra.Service(endpoint):
            return [node_text(endpoint)]
        case algebra.Group(_, keys, aggregates):
            by = [f"by ?{name} := {expression_text(each)}" for name, each in keys]
            return [*by, *(f"?{name} := {_aggregate(each)}" for name, each in aggregates)]
        case algebra.Bag(predicate, relation, _, elements):
            return [f"{predicate.term} {relation} {{{'; '.join(map(expression_text, elements))}}}"]
        case algebra.Select():
            return [_select(operator)]
    return []


def _select(select: algebra.Select) -> str:
    words = ["distinct" if select.distinct else "reduced" if select.reduced else "", _names(select.projection)]
    words += ["order by " + ", ".join(_order(each) for each in select.order)] if select.order else []
    words += [f"limit {select.limit}"] if select.limit is not None else []
    words += [f"offset {select.offset}"] if select.offset else []
    return " ".join(word for word in words if word)


def _order(order: algebra.Order) -> str:
    return f"{expression_text(order.expression)} {'descending' if order.descending else ''}".rstrip()


def _values(names: tuple[str, ...], rows: tuple[tuple[str | None, ...], ...]) -> str:
    shown = "; ".join(" ".join(term or "UNDEF" for term in row) for row in rows[:_ROWS_SHOWN])
    return f"{_names(names)}: {shown}" + (f"; … {len(rows)} rows" if len(rows) > _ROWS_SHOWN else "")


def _names(names: tuple[str, ...]) -> str:
    return " ".join(f"?{name}" for name in names)


def pattern_text(pattern: Pattern) -> str:
    triple = " ".join(node_text(node) for node in pattern.triple)
    return triple if pattern.graph is None else f"{triple} in {node_text(pattern.graph)}"


def node_text(node: Node) -> str:
    match node:
        case Var(name):
            return f"?{name}"
        case Const(term):
            return term
        case algebra.Param(index):
            return f"${index}"


def path_text(path: algebra.Path) -> str:
    match path:
        case algebra.Link(predicate):
            return predicate.term
        case algebra.Inverse(inner):
            return f"^{path_text(inner)}"
        case algebra.Chain(paths):
            return "(" + "/".join(map(path_text, paths)) + ")"
        case algebra.Either(paths):
            return "(" + "|".join(map(path_text, paths)) + ")"
        case algebra.Repeat(inner, least, once):
            return path_text(inner) + ("?" if once else "+" if least else "*")
        case algebra.Negated(forward, backward):
            ways = [each.term for each in forward or ()] + [f"^{each.term}" for each in backward or ()]
            return f"!({'|'.join(ways)})"


def expression_text(expression: Expression) -> str:
    match expression:
        case Apply(op, (left, right)) if op in _INFIX:
            return f"({expression_text(left)} {op} {expression_text(right)})"
        case Apply(op, args):
            return f"{op}({', '.join(map(expression_text, args))})"
        case algebra.Exists(inner):
            return f"exists{{{'; '.join(line.strip() for line in format_algebra(inner).splitlines())}}}"
        case Var() | Const() | algebra.Param():
            return node_text(expression)


def _aggregate(aggregate: algebra.Aggregate) -> str:
    inner = "*" if aggregate.argument is None else expression_text(aggregate.argument)
    return f"{aggregate.op}({'distinct ' if aggregate.distinct else ''}{inner})"


_CLASSES: Mapping[str, type] = {
    each.__name__: each
    for each in (*vars(algebra).values(), Conjunction, Bind, Check)
    if isinstance(each, type) and is_dataclass(each)
}


def algebra_to_json(part: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return a query, or a part of one, as a JSON value; a node of the algebra is an object with its class as `is`."""
    if isinstance(part, tuple):
        return [algebra_to_json(each) for each in part]
    if isinstance(part, Enum):
        return part.value
    if type(part).__name__ not in _CLASSES:
        return part
    return {
        "is": type(part).__name__,
        **{each.name: algebra_to_json(getattr(part, each.name)) for each in fields(part)},
    }


def algebra_from_json(value: Any) -> Any:  # noqa: ANN401 - whatever part it was
    """Return the query or part that `algebra_to_json` was given."""
    if isinstance(value, list):
        return tuple(algebra_from_json(each) for each in value)
    if not isinstance(value, dict):
        return value
    inner = {name: algebra_from_json(each) for name, each in value.items() if name != "is"}
    if inner.get("family") is not None:
        inner["family"] = Family(inner["family"])
    return _CLASSES[value["is"]](**inner)
