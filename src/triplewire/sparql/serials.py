"""Serials: the algebra as JSON values, and back. What is written by one version of this module is read by it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

from triplewire.sparql import algebra
from triplewire.sparql.algebra import Family
from triplewire.sparql.conjunctions import Conjunction
from triplewire.sparql.unbounded import Bind, Check

_CLASSES: Mapping[str, type] = {
    each.__name__: each
    for each in (
        algebra.Var,
        algebra.Const,
        algebra.Param,
        algebra.Apply,
        algebra.Exists,
        algebra.Aggregate,
        algebra.Pattern,
        algebra.Link,
        algebra.Inverse,
        algebra.Chain,
        algebra.Either,
        algebra.Repeat,
        algebra.Negated,
        algebra.Basic,
        algebra.Reach,
        algebra.Join,
        algebra.LeftJoin,
        algebra.Union,
        algebra.Minus,
        algebra.Filter,
        algebra.Extend,
        algebra.Values,
        algebra.Graph,
        algebra.Window,
        algebra.Group,
        algebra.Bag,
        algebra.Order,
        algebra.Select,
        algebra.Dataset,
        algebra.Query,
        Conjunction,
        Bind,
        Check,
    )
}


def to_value(part: Any) -> Any:  # noqa: ANN401 - a JSON value
    """A JSON value of a query or a part of one: an object that starts with its kind, for what has one."""
    if isinstance(part, tuple):
        return [to_value(each) for each in part]
    if isinstance(part, Enum):
        return part.value
    if type(part).__name__ not in _CLASSES:
        return part
    return {"is": type(part).__name__, **{each.name: to_value(getattr(part, each.name)) for each in fields(part)}}


def from_value(value: Any) -> Any:  # noqa: ANN401 - whatever part it was
    """The part that `to_value` was given."""
    if isinstance(value, list):
        return tuple(from_value(each) for each in value)
    if not isinstance(value, dict):
        return value
    inner = {name: from_value(each) for name, each in value.items() if name != "is"}
    if inner.get("family") is not None:
        inner["family"] = Family(inner["family"])
    return _CLASSES[value["is"]](**inner)
