"""The function library: operators and functions by the name that the algebra gives them, ontology look-ups included.

Ontology functions look rows up in the relation `closure`, with the columns `relation`, `lower` and `upper`, all of
them text:

    below       a class or property; another that is over it, or equivalent
    strictly    the same without equivalents
    equivalent  a class, property or individual; another that means the same
    is_a        an individual; a class that it is of
    <…>         for the property of this IRI: a subject; an object

No name stands beside itself there: being below or equivalent to oneself needs no ontology.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from triplewire.model.terms import is_iri
from triplewire.sparql.algebra import Apply, Const, Expression, Family, Param, Var
from triplewire.sparql.compiler import strings
from triplewire.sparql.compiler.arithmetic import BindSql, arithmetic, make_rounding, random_number
from triplewire.sparql.compiler.casts import CASTS, make_date_part, strdt, timezone, tz
from triplewire.sparql.compiler.comparisons import compare_equal, compare_ordered, same_term
from triplewire.sparql.compiler.values import NUMERIC, STRINGS, ComputedBoolean, ComputedIri, ComputedString, Value
from triplewire.sparql.sql import Sql, call, case, compare, equal, every, is_null, negate, some, text

CLOSURE = "closure"
CLOSURE_COLUMNS = ("relation", "lower", "upper")
HAS = "has"
REFLEXIVE: Mapping[str, bool] = {"below": True, "strictly": False, "equivalent": True, "is_a": False}
"""The relations between two names, and whether each is reflexive."""


def _make_relation(relation: str) -> Callable[[Value, Value], Value]:
    """Compile a look-up. It is an error for anything but an IRI, so neither true nor false."""

    def compile_lookup(lower: Value, upper: Value) -> Value:
        found = _in_closure(text(relation), lower.text(), upper.text())
        same = [equal(lower.text(), upper.text())] if REFLEXIVE[relation] else []
        return ComputedBoolean(case((every(lower.among(Family.IRI), upper.among(Family.IRI)), some(*same, found))))

    return compile_lookup


def _has(subject: Value, property_: Value, object_: Value) -> Value:
    found = _in_closure(property_.text(), subject.text(), object_.text())
    return ComputedBoolean(case((every(subject.among(Family.IRI), property_.among(Family.IRI)), found)))


def _in_closure(*sought: Sql) -> Sql:
    """Look a row up in the closure. Columns are not qualified, so that they do not count as read by the expression."""
    names = [exp.to_identifier(name) for name in CLOSURE_COLUMNS]
    rows = exp.Select(expressions=[exp.Tuple(expressions=names)]).from_(CLOSURE, copy=False)
    return exp.In(this=exp.Tuple(expressions=list(sought)), query=rows.subquery(copy=False))


ONTOLOGY_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    **{name: _make_relation(name) for name in REFLEXIVE},
    HAS: _has,
}
"""The functions, by the names of their relations: of two names, or of subject, property and object."""


@dataclass(frozen=True)
class OntologyLookup:
    """A condition that says nothing but that the value of a variable is in a relation with constants."""

    variable: str
    relation: str | None
    """None where the property is a constant, too."""
    terms: tuple[Expression, Expression, Expression]
    """The value that is looked up in each of the columns."""

    @property
    def reflexive(self) -> bool:
        return self.relation is not None and REFLEXIVE[self.relation]


def find_lookup(condition: Expression) -> OntologyLookup | None:
    """Return the condition as a look-up; None if it is not one."""
    match condition:
        case Apply("has", (Var(name) as subject, property_, object_)) if _address(property_) and _constant(object_):
            return OntologyLookup(name, None, (property_, subject, object_))
        case Apply(op, (Var(name) as lower, upper)) if op in REFLEXIVE and _address(upper):
            return OntologyLookup(name, op, (Const(op), lower, upper))
        case Apply(op, (lower, Var(name) as upper)) if op in REFLEXIVE and _address(lower):
            return OntologyLookup(name, op, (Const(op), lower, upper))
    return None


def _constant(expression: Expression) -> bool:
    return isinstance(expression, Const | Param)


def _address(expression: Expression) -> bool:
    """Tell whether it is a constant that is an IRI."""
    if isinstance(expression, Const):
        return is_iri(expression.term)
    return isinstance(expression, Param) and expression.family is Family.IRI


def _lang(value: Value) -> Value:
    tag = value.language()
    found = text("") if is_null(tag) else exp.Coalesce(this=tag, expressions=[text("")])
    return ComputedString(case((value.literal(), found)))


def _is(*families: Family) -> Callable[[Value], Value]:
    return lambda value: ComputedBoolean(case((value.bound(), value.among(*families))))


def _matching(name: str) -> Callable[[Value, Value], Value]:
    """A test of two strings whose tags, if there are any, are compatible."""

    def compile_test(left: Value, right: Value) -> Value:
        tagged = every(right.among(Family.TAGGED), equal(left.language(), right.language()))
        fits = every(left.among(*STRINGS), some(right.among(Family.STRING), tagged))
        texts = [each.narrow(*STRINGS).string() for each in (left, right)]
        return ComputedBoolean(case((fits, call(name, *texts))))

    return compile_test


def _in(value: Value, *members: Value) -> Value:
    """Compile IN. An error on the left is an error even if the list is empty."""
    found = some(*(compare_equal(value, member) for member in members))
    return ComputedBoolean(found if members else case((value.bound(), found)))


def _ordered(op: str) -> Callable[[Value, Value], Value]:
    return lambda left, right: ComputedBoolean(compare_ordered(op, left, right))


def bind_value(value: Value, bind: BindSql) -> Value:
    """Bind the parts of a value that is used more than once."""
    match value:
        case ComputedBoolean(condition):
            return ComputedBoolean(bind(condition))
        case ComputedString(inner, families, tag):
            return ComputedString(bind(inner), families, bind(tag))
        case ComputedIri(inner):
            return ComputedIri(bind(inner))
    return value


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "=": lambda left, right: ComputedBoolean(compare_equal(left, right)),
    "!=": lambda left, right: ComputedBoolean(negate(compare_equal(left, right))),
    **{op: _ordered(op) for op in ("<", "<=", ">", ">=")},
    "in": _in,
    "not in": lambda *values: ComputedBoolean(negate(_in(*values).boolean())),
    "str": lambda value: ComputedString(value.string()),
    "lang": _lang,
    "datatype": lambda value: ComputedIri(value.datatype()),
    "isiri": _is(Family.IRI),
    "isblank": _is(Family.BLANK),
    "isliteral": lambda value: ComputedBoolean(value.literal()),
    "isnumeric": _is(*NUMERIC),
    "sameterm": lambda left, right: ComputedBoolean(same_term(left, right)),
    "strstarts": _matching("TW_STARTS"),
    "strends": _matching("TW_ENDS"),
    "contains": _matching("TW_CONTAINS"),
    "regex": strings.match_regex,
    **ONTOLOGY_FUNCTIONS,
}
"""Operators and functions by the name that the algebra gives them, which compute so little that it may be repeated.
Logic and `bound` are not here, because they do not take values."""

BINDING_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    **{op: partial(arithmetic, op) for op in ("+", "-", "*", "/")},
    **{name: make_rounding(name) for name in ("abs", "ceil", "floor", "round")},
    **{name: make_date_part(name) for name in ("year", "month", "day", "hours", "minutes", "seconds")},
    **{name: strings.make_digest(name) for name in ("md5", "sha1", "sha256", "sha384", "sha512")},
    "timezone": timezone,
    "tz": tz,
    "strlen": strings.strlen,
    "ucase": strings.make_string_function("TW_UPPER"),
    "lcase": strings.make_string_function("TW_LOWER"),
    "encode_for_uri": strings.encode_for_uri,
    "concat": strings.concat_strings,
    "substr": strings.substr,
    "strbefore": strings.str_before,
    "strafter": strings.str_after,
    "replace": strings.replace_matches,
    "langmatches": strings.lang_matches,
    "strlang": strings.strlang,
    "strdt": strdt,
    "iri": strings.make_iri,
    "uri": strings.make_iri,
    **CASTS,
}
"""Functions that use a value more than once; they take `bind` first."""

VOLATILE_FUNCTIONS: Mapping[str, Callable[[BindSql, int], Value]] = {
    "rand": random_number,
    "uuid": strings.make_uuid,
    "struuid": strings.make_struuid,
    "bnode": strings.fresh_blank_node,
}
"""Functions without arguments that return another value at each call; they take a number for each call."""


def effective_boolean(value: Value) -> Sql:
    zero = some(equal(value.number(), exp.Literal.number(0)), exp.IsNan(this=value.number()))
    return case(
        (value.among(Family.BOOLEAN), value.narrow(Family.BOOLEAN).boolean()),
        (value.among(*NUMERIC), negate(zero)),
        (value.among(*STRINGS), compare("!=", value.narrow(*STRINGS).string(), text(""))),
        (value.ill_typed(), exp.false()),
    )
