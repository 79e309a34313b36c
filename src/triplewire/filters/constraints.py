"""Constraints on the attributes of an event, and filters made of them."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.filters.relations import Bagged, Relation


@dataclass(frozen=True)
class Constraint:
    """Holds for an event if one of the attribute's values is in the relation with the one operand; or, with a `bag`
    operator, if all of them together can be paired with the operands one to one:

        #=  so that none is left over on either side
        #<  so that none of the event's is left over
        #>  so that none of the filter's is left over

    An attribute that the event has not satisfies nothing. Its values are the objects of the predicate, as often as
    there are triples; in a bag the members of a list stand in its place.
    """

    attribute: str
    relation: Relation
    operands: tuple[tuple[str, ...], ...]
    """Terms: one for each value, two for a property with its object."""
    bag: Bagged | None = None


@dataclass(frozen=True)
class Filter:
    """Holds for an event if all of its constraints do."""

    constraints: tuple[Constraint, ...] = ()
