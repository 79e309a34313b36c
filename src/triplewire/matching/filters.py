"""Attribute filters: subscriptions as constraints on attributes, in JSON, and the queries that they stand for.

A document is validated once, here. A constraint becomes a pattern with variables of its own and a condition on the
object, or a bag, which takes all objects of the predicate together; several filters are the branches of a union. The
form of a filter is the filter without its operands: filters of one form become queries that differ in constants alone,
so they have one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, reduce
from typing import Final, Literal, TypeAlias

from triplewire.model.errors import InvalidField
from triplewire.model.terms import XSD, is_literal, is_plain
from triplewire.rdf.terms import make_iri, make_literal
from triplewire.sparql import Apply, Const, Expression, Family, Pattern, Query, Var, family_of
from triplewire.sparql.algebra import Bag, Basic, Join, Operator, Union
from triplewire.sparql.algebra import Filter as Conditions

FILTERS: Final = 64
"""Filters of one subscription, one of which must hold. Each becomes a branch of its SQL."""

FILTER_CONSTRAINTS: Final = 32
"""Constraints of one filter. Each becomes a join of an event's quads."""

BAG_ELEMENTS: Final = 32
"""Elements of a bag in a filter. Each costs a bit of an integer for each value of an event, and a comparison."""


class Operand(StrEnum):
    """The kind of value that an operator compares with."""

    TERM = "an IRI or a literal"
    ORDERED = "a number, a string, a date or a time"
    TEXT = "a string"
    NAME = "an IRI"
    FACT = "a property and an individual or value, as a list of two"


@dataclass(frozen=True)
class FilterRelation:
    """One operator. `function` is its name in the algebra; the first argument is the value of the event and the
    second that of the filter, or the reverse if it is `turned`."""

    symbol: str
    word: str
    operand: Operand
    function: str
    turned: bool = False
    negated: bool = False
    strict: str | None = None
    """The function of the strict variant, in which a name is not related to itself nor to its equivalents."""

    def strictly(self) -> FilterRelation:
        """The strict variant. Raises ValueError if there is none."""
        if self.strict is None:
            raise ValueError(self.symbol)
        return replace(self, function=self.strict)

    def between(self, value: Expression, operand: tuple[str, ...]) -> Expression:
        """The condition on a value of the event."""
        terms = tuple(Const(term) for term in operand)
        found = Apply(self.function, (*terms, value) if self.turned else (value, *terms))
        return Apply("!", (found,)) if self.negated else found


_CONTENT = (
    FilterRelation("=", "equal", Operand.TERM, "="),
    FilterRelation("!=", "not_equal", Operand.TERM, "!="),
    FilterRelation("<", "less", Operand.ORDERED, "<"),
    FilterRelation("<=", "less_or_equal", Operand.ORDERED, "<="),
    FilterRelation(">", "greater", Operand.ORDERED, ">"),
    FilterRelation(">=", "greater_or_equal", Operand.ORDERED, ">="),
    FilterRelation(">*", "starts_with", Operand.TEXT, "strstarts"),
    FilterRelation("*<", "ends_with", Operand.TEXT, "strends"),
    FilterRelation("*", "contains", Operand.TEXT, "contains"),
)

_ONTOLOGICAL = (
    FilterRelation("@>", "more_specific", Operand.NAME, "below", strict="strictly"),
    FilterRelation("@<", "less_specific", Operand.NAME, "below", turned=True, strict="strictly"),
    FilterRelation("@~", "equivalent", Operand.NAME, "equivalent"),
    FilterRelation("@!~", "not_equivalent", Operand.NAME, "equivalent", negated=True),
    FilterRelation("@=", "is_a", Operand.NAME, "is_a"),
    FilterRelation("@!=", "is_not_a", Operand.NAME, "is_a", negated=True),
    FilterRelation("@*", "has_property", Operand.FACT, "has"),
)

RELATIONS: Mapping[str, FilterRelation] = {
    name: each for each in (*_CONTENT, *_ONTOLOGICAL) for name in (each.symbol, each.word)
}
"""Operators by symbol and by word."""

BagSymbol: TypeAlias = Literal["#=", "#<", "#>"]

BAGS: Mapping[str, BagSymbol] = {
    "#=": "#=",
    "#<": "#<",
    "#>": "#>",
    "equal_bag": "#=",
    "sub_bag": "#<",
    "super_bag": "#>",
}
"""Operators on bags by symbol and by word."""


@dataclass(frozen=True)
class Constraint:
    """Holds for an event if one of the attribute's values is in the relation with the one operand; or, with a `bag`
    operator, if all of them together can be paired with the operands one to one:

        #=  so that none is left over on either side
        #<  so that none of the event's is left over
        #>  so that none of the filter's is left over

    An attribute that the event has not satisfies nothing. Its values are the objects of the predicate, as often as
    there are triples; in a bag the members of a list stand in its path.
    """

    attribute: str
    relation: FilterRelation
    operands: tuple[tuple[str, ...], ...]
    """Terms: one for each value, two for a property with its object."""
    bag: BagSymbol | None = None


@dataclass(frozen=True)
class AttributeFilter:
    """A filter, which holds for an event if all its constraints do."""

    constraints: tuple[Constraint, ...] = ()


_FORMS = 'a string, a number, true, false, {"@id": …} or {"@value": …} with "@type" or "@language"'

_FAMILIES: Mapping[Operand, frozenset[Family]] = {
    Operand.ORDERED: frozenset(
        {Family.EXACT, Family.FLOAT, Family.DOUBLE, Family.STRING, Family.DATETIME, Family.DATE}
    ),
    Operand.TEXT: frozenset({Family.STRING, Family.TAGGED}),
    Operand.NAME: frozenset({Family.IRI}),
}


@dataclass(frozen=True)
class TermReader:
    """Reads values with the declared prefixes. `field` in its errors is the position of the value in the document."""

    prefixes: Mapping[str, str] = field(default_factory=dict)

    def name(self, value: object, path: str) -> str:
        """An IRI, in full or with a prefix; also as `{"@id": …}`. Raises InvalidField."""
        if isinstance(value, dict) and set(value) == {"@id"}:
            value = value["@id"]
        if not isinstance(value, str):
            raise InvalidField(path, f"{path} must be an IRI, not {value!r}")
        prefix, colon, local = value.partition(":")
        try:
            return make_iri(self.prefixes[prefix] + local if colon and prefix in self.prefixes else value)
        except ValueError:
            hint = f"; there is no prefix {prefix!r}" if colon and "/" not in value else ""
            raise InvalidField(path, f"{path}: {value!r} is no absolute IRI{hint}") from None

    def operand(self, value: object, kind: Operand, path: str) -> tuple[str, ...]:
        """The operand of a relation, of the kind that it takes. Raises InvalidField."""
        if kind is Operand.FACT:
            return self._fact(value, path)
        term = self._named(value, path) if kind is Operand.NAME else self._term(value, path)
        if kind is not Operand.TERM and family_of(term) not in _FAMILIES[kind]:
            raise InvalidField(path, f"{path} must be {kind.value}, not {term}")
        return (term,)

    def _fact(self, value: object, path: str) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) != 2:
            raise InvalidField(path, f"{path} must be {Operand.FACT.value}, not {value!r}")
        return self.name(value[0], f"{path}[0]"), self._named(value[1], f"{path}[1]")

    def _named(self, value: object, path: str) -> str:
        """A term; here a string is an IRI."""
        return self.name(value, path) if isinstance(value, str) else self._term(value, path)

    def _term(self, value: object, path: str) -> str:
        match value:
            case bool():
                return make_literal(str(value).lower(), XSD + "boolean")
            case int():
                return make_literal(str(value), XSD + "integer")
            case float():
                return make_literal(repr(value), XSD + "double")
            case str():
                return make_literal(value)
            case {"@id": address, **others} if not others:
                return self.name(address, path)
            case {"@value": str(lexical), **others}:
                return self._literal(lexical, others, path)
        raise InvalidField(path, f"{path} must be {_FORMS}, not {value!r}")

    def _literal(self, lexical: str, others: Mapping[object, object], path: str) -> str:
        match others:
            case {"@type": type_, **rest} if not rest:
                datatype = self.name(type_, f"{path}.@type")
                return self._checked(lambda: make_literal(lexical, datatype[1:-1]), path)
            case {"@language": str(tag), **rest} if not rest:
                return self._checked(lambda: make_literal(lexical, language=tag), path)
        if others:
            raise InvalidField(path, f"{path} must be {_FORMS}, not one with {', '.join(map(str, others))}")
        return make_literal(lexical)

    def _checked(self, make: Callable[[], str], path: str) -> str:
        try:
            term = make()
        except ValueError as error:
            raise InvalidField(path, f"{path}: {error}") from None
        assert is_literal(term)
        return term


_FIELDS = ("attribute", "op", "value", "strict")
_OPERATORS = ", ".join(dict.fromkeys([*(each.symbol for each in RELATIONS.values()), *BAGS.values()]))


def parse_filters(value: object) -> tuple[AttributeFilter, ...]:
    """The filters of `{"filter": [constraint, …]}` or `{"filters": [[constraint, …], …]}`, one of which must hold;
    with `prefixes` for their IRIs. Other fields are ignored. Raises InvalidField, with the position in the document,
    for anything invalid."""
    if not isinstance(value, Mapping):
        raise InvalidField("filter", 'a filter comes as {"filter": [{"attribute": …, "op": …, "value": …}, …]}')
    terms = TermReader(_prefixes(value.get("prefixes", {})))
    if ("filter" in value) == ("filters" in value):
        raise InvalidField(
            "filter", "there must be either filter, one list of constraints, or filters, several such lists"
        )
    if "filter" in value:
        return (_filter(value["filter"], "filter", terms),)
    given = _listed(value["filters"], "filters", FILTERS)
    if not given:
        raise InvalidField("filters", "filters must hold at least one list of constraints")
    return tuple(_filter(each, f"filters[{at}]", terms) for at, each in enumerate(given))


def _prefixes(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise InvalidField("prefixes", 'prefixes must be an object such as {"ex": "http://example.org/"}')
    return {str(name).removesuffix(":"): each for name, each in value.items()}


def _listed(value: object, path: str, most: int) -> list[object]:
    if not isinstance(value, list):
        raise InvalidField(path, f"{path} must be a list, not {value!r}")
    if len(value) > most:
        raise InvalidField(path, f"{path} has {len(value)} entries, over the limit of {most}")
    return value


def _filter(value: object, path: str, terms: TermReader) -> AttributeFilter:
    given = _listed(value, path, FILTER_CONSTRAINTS)
    return AttributeFilter(tuple(_constraint(each, f"{path}[{at}]", terms) for at, each in enumerate(given)))


def _constraint(value: object, path: str, terms: TermReader) -> Constraint:
    if not isinstance(value, Mapping):
        raise InvalidField(path, f"{path} must be an object with {', '.join(_FIELDS)}, not {value!r}")
    if unknown := sorted(map(str, set(value) - set(_FIELDS))):
        raise InvalidField(path, f"{path} has no {', '.join(unknown)}; it has {', '.join(_FIELDS)}")
    if missing := [name for name in _FIELDS[:3] if name not in value]:
        raise InvalidField(path, f"{path} lacks {', '.join(missing)}")
    bag, relation = _operator(value["op"], f"{path}.op")
    return Constraint(
        attribute=terms.name(value["attribute"], f"{path}.attribute"),
        relation=_strict(relation, value.get("strict", False), f"{path}.strict"),
        operands=_operands(value["value"], relation, bag, f"{path}.value", terms),
        bag=bag,
    )


def _operator(value: object, path: str) -> tuple[BagSymbol | None, FilterRelation]:
    """Parse an operator. `#>/@<` is a bag operator with the relation of its elements; without one it is `=`."""
    first, slash, second = value.partition("/") if isinstance(value, str) else ("", "", "")
    bag = BAGS.get(first)
    relation = RELATIONS.get((second if slash else "=") if bag else str(value))
    if relation is None:
        raise InvalidField(path, f"{path}: {value!r} is no operator; there are {_OPERATORS}, and bags such as #>/@<")
    return bag, relation


def _strict(relation: FilterRelation, value: object, path: str) -> FilterRelation:
    if not isinstance(value, bool):
        raise InvalidField(path, f"{path} must be true or false, not {value!r}")
    try:
        return relation.strictly() if value else relation
    except ValueError:
        known = [symbol for symbol, each in RELATIONS.items() if each.strict and symbol == each.symbol]
        raise InvalidField(
            path, f"{path}: {relation.symbol} has no strict variant; {' and '.join(known)} have"
        ) from None


def _operands(
    value: object, relation: FilterRelation, bag: BagSymbol | None, path: str, terms: TermReader
) -> tuple[tuple[str, ...], ...]:
    if bag is None:
        return (terms.operand(value, relation.operand, path),)
    given = _listed(value, path, BAG_ELEMENTS)
    return tuple(terms.operand(each, relation.operand, f"{path}[{at}]") for at, each in enumerate(given))


_EARLY = ("=", "has", "is_a", "equivalent", "strictly", "below")
"""Functions of selective constraints, the most selective first: these constraints are evaluated first."""


def document_query(value: Mapping[str, object]) -> Query:
    """The query of a JSON document with `filter` or `filters`, and perhaps `prefixes`. Raises InvalidField."""
    return build_query(order_filters(parse_filters(value)))


def build_query(filters: Iterable[tuple[Constraint, ...]]) -> Query:
    """An ASK query that tells whether one of the filters, which are distinct and in order, holds for an event. There
    must be at least one filter."""
    return Query("ask", reduce(Union, [_conjunction(constraints) for constraints in filters]))


def order_filters(filters: Iterable[AttributeFilter]) -> list[tuple[Constraint, ...]]:
    """The distinct filters in canonical order."""
    sorted_ = (tuple(sorted(set(each.constraints), key=_order)) for each in filters)
    return sorted(set(sorted_), key=lambda constraints: [_order(each) for each in constraints])


def _order(constraint: Constraint) -> tuple[object, ...]:
    """A sort key in which structure precedes constants."""
    relation = constraint.relation
    named = not _is_term_constant(constraint)
    early = _EARLY.index(relation.function) if relation.function in _EARLY and not relation.negated else len(_EARLY)
    bag = "" if constraint.bag is None else f"{constraint.bag}{len(constraint.operands):03}"
    return bag, named, early, constraint.attribute, relation.symbol, relation.function, constraint.operands


def _conjunction(constraints: tuple[Constraint, ...]) -> Operator:
    single = [(Var(f".o{at}"), each) for at, each in enumerate(constraints) if each.bag is None]
    patterns = tuple(_pattern(object_, each) for object_, each in single)
    asked = [(object_, each) for object_, each in single if not _is_term_constant(each)]
    conditions = tuple(each.relation.between(object_, each.operands[0]) for object_, each in asked)
    bags = [_bag(Var(f".o{at}"), each) for at, each in enumerate(constraints) if each.bag is not None]
    plain: Operator = Conditions(Basic(patterns), conditions) if conditions else Basic(patterns)
    return reduce(Join, bags if bags and not single else [plain, *bags])


def _pattern(object_: Var, constraint: Constraint) -> Pattern:
    named = Const(constraint.operands[0][0]) if _is_term_constant(constraint) else object_
    return Pattern(Var(f"{object_.name}.s"), Const(constraint.attribute), named)


def _is_term_constant(constraint: Constraint) -> bool:
    """Can the operand stand in the pattern itself? IRIs and strings equal only themselves, and a constant in a
    pattern is matched fastest."""
    equal = constraint.bag is None and constraint.relation.function == "="
    return equal and is_plain(constraint.operands[0][0])


def _bag(member: Var, constraint: Constraint) -> Operator:
    assert constraint.bag is not None
    pairs = tuple(constraint.relation.between(member, each) for each in constraint.operands)
    return Bag(Const(constraint.attribute), constraint.bag, member.name, pairs)


@dataclass(frozen=True)
class ConstraintForm:
    """A constraint without its operands; `sizes` has the number of terms of each."""

    attribute: str
    relation: FilterRelation
    bag: BagSymbol | None
    sizes: tuple[int, ...]

    def filled(self, terms: Iterator[str]) -> Constraint:
        operands = tuple([tuple([next(terms) for _ in range(size)]) for size in self.sizes])
        return Constraint(self.attribute, self.relation, operands, self.bag)


@dataclass(frozen=True)
class FilterForm:
    """Filters without their operands, in canonical order. Forms that differ only in terms are equal."""

    filters: tuple[tuple[ConstraintForm, ...], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """The hash, computed once and of a part only: it is needed often."""
        return hash(tuple([(each.attribute, each.relation.symbol, each.bag) for one in self.filters for each in one]))

    def query(self, terms: Sequence[str]) -> Query:
        """The query of the filters with these terms, in order, as operands."""
        left = iter(terms)
        return build_query([tuple([blank.filled(left) for blank in blanks]) for blanks in self.filters])


def parse_form(value: Mapping[str, object]) -> tuple[FilterForm, tuple[str, ...]]:
    """The form and the terms of a JSON document with `filter` or `filters`, and perhaps `prefixes`. Raises
    InvalidField. `form.query(terms)` is their query."""
    ordered = order_filters(parse_filters(value))
    form = FilterForm(tuple([tuple([_blank(each) for each in constraints]) for constraints in ordered]))
    operands = (operand for constraints in ordered for each in constraints for operand in each.operands)
    return form, tuple([term for operand in operands for term in operand])


def _blank(constraint: Constraint) -> ConstraintForm:
    sizes = tuple([len(each) for each in constraint.operands])
    return ConstraintForm(constraint.attribute, constraint.relation, constraint.bag, sizes)
