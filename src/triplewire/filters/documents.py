"""Documents: filters as they come in JSON, checked once, here."""

from __future__ import annotations

from collections.abc import Mapping

from triplewire.config import limits
from triplewire.filters.constraints import Constraint, Filter
from triplewire.filters.relations import BAGS, RELATIONS, Bagged, Relation
from triplewire.filters.terms import Terms
from triplewire.model.errors import InvalidField

_FIELDS = ("attribute", "op", "value", "strict")
_OPERATORS = ", ".join(dict.fromkeys([*(each.symbol for each in RELATIONS.values()), *BAGS.values()]))


def parse(value: object) -> tuple[Filter, ...]:
    """The filters of `{"filter": [constraint, …]}` or `{"filters": [[constraint, …], …]}`, of which one must hold; with
    `prefixes` for the IRIs in them. Other fields are not looked at.

    Raises Unfit, with the place in the document, for whatever is not as it must be.
    """
    if not isinstance(value, Mapping):
        raise InvalidField("filter", 'a filter comes as {"filter": [{"attribute": …, "op": …, "value": …}, …]}')
    terms = Terms(_prefixes(value.get("prefixes", {})))
    if ("filter" in value) == ("filters" in value):
        raise InvalidField(
            "filter", "there must be either filter, one list of constraints, or filters, several such lists"
        )
    if "filter" in value:
        return (_filter(value["filter"], "filter", terms),)
    given = _listed(value["filters"], "filters", limits.FILTERS)
    if not given:
        raise InvalidField("filters", "filters must hold at least one list of constraints")
    return tuple(_filter(each, f"filters[{at}]", terms) for at, each in enumerate(given))


def _prefixes(value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value.values()):
        raise InvalidField("prefixes", 'prefixes must be an object such as {"ex": "http://example.org/"}')
    return {str(name).removesuffix(":"): each for name, each in value.items()}


def _listed(value: object, place: str, most: int) -> list[object]:
    if not isinstance(value, list):
        raise InvalidField(place, f"{place} must be a list, not {value!r}")
    if len(value) > most:
        raise InvalidField(place, f"{place} has {len(value)} entries, over the limit of {most}")
    return value


def _filter(value: object, place: str, terms: Terms) -> Filter:
    given = _listed(value, place, limits.FILTER_CONSTRAINTS)
    return Filter(tuple(_constraint(each, f"{place}[{at}]", terms) for at, each in enumerate(given)))


def _constraint(value: object, place: str, terms: Terms) -> Constraint:
    if not isinstance(value, Mapping):
        raise InvalidField(place, f"{place} must be an object with {', '.join(_FIELDS)}, not {value!r}")
    if unknown := sorted(map(str, set(value) - set(_FIELDS))):
        raise InvalidField(place, f"{place} has no {', '.join(unknown)}; it has {', '.join(_FIELDS)}")
    if missing := [name for name in _FIELDS[:3] if name not in value]:
        raise InvalidField(place, f"{place} lacks {', '.join(missing)}")
    bag, relation = _operator(value["op"], f"{place}.op")
    return Constraint(
        attribute=terms.name(value["attribute"], f"{place}.attribute"),
        relation=_strict(relation, value.get("strict", False), f"{place}.strict"),
        operands=_operands(value["value"], relation, bag, f"{place}.value", terms),
        bag=bag,
    )


def _operator(value: object, place: str) -> tuple[Bagged | None, Relation]:
    """`#>/@<` is a bag operator with the relation of its elements, which is `=` where none is named."""
    first, slash, second = value.partition("/") if isinstance(value, str) else ("", "", "")
    bag = BAGS.get(first)
    relation = RELATIONS.get((second if slash else "=") if bag else str(value))
    if relation is None:
        raise InvalidField(place, f"{place}: {value!r} is no operator; there are {_OPERATORS}, and bags such as #>/@<")
    return bag, relation


def _strict(relation: Relation, value: object, place: str) -> Relation:
    if not isinstance(value, bool):
        raise InvalidField(place, f"{place} must be true or false, not {value!r}")
    try:
        return relation.strictly() if value else relation
    except ValueError:
        known = [symbol for symbol, each in RELATIONS.items() if each.strict and symbol == each.symbol]
        raise InvalidField(
            place, f"{place}: {relation.symbol} has no strict variant; {' and '.join(known)} have"
        ) from None


def _operands(
    value: object, relation: Relation, bag: Bagged | None, place: str, terms: Terms
) -> tuple[tuple[str, ...], ...]:
    if bag is None:
        return (terms.operand(value, relation.operand, place),)
    given = _listed(value, place, limits.BAG_ELEMENTS)
    return tuple(terms.operand(each, relation.operand, f"{place}[{at}]") for at, each in enumerate(given))
