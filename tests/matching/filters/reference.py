"""What filters mean, in plain Python and by brute force."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from triplewire.matching.filters import AttributeFilter, Constraint
from triplewire.model import Event
from triplewire.model.terms import RDF, RDF_TYPE, XSD, is_iri, is_literal, parse_literal
from triplewire.sparql.entailment.ontologies import SUB_CLASS, SUB_PROPERTY

Triple = tuple[str, str, str]
FIRST, REST, NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))


@dataclass(frozen=True)
class Knowledge:
    """Triples of sub-classes, sub-properties, types and facts."""

    triples: Collection[Triple] = ()

    def below(self, lower: str, upper: str) -> bool:
        return lower == upper or any(upper in self._above(lower, each) for each in (SUB_CLASS, SUB_PROPERTY))

    def strictly(self, lower: str, upper: str) -> bool:
        return self.below(lower, upper) and not self.below(upper, lower)

    def equivalent(self, left: str, right: str) -> bool:
        return self.below(left, right) and self.below(right, left)

    def is_a(self, individual: str, class_: str) -> bool:
        stated = [
            object_ for subject, predicate, object_ in self.triples if (subject, predicate) == (individual, RDF_TYPE)
        ]
        return any(each == class_ or class_ in self._above(each, SUB_CLASS) for each in stated)

    def has(self, subject: str, property_: str, object_: str) -> bool:
        return any(
            (subject, object_) == (first, last) and (each == property_ or property_ in self._above(each, SUB_PROPERTY))
            for first, each, last in self.triples
        )

    def _above(self, name: str, predicate: str) -> set[str]:
        found, edge = set[str](), {name}
        while edge:
            edge = {upper for lower, each, upper in self.triples if each == predicate and lower in edge} - found
            found |= edge
        return found


def holds(filters: Sequence[AttributeFilter], event: Event, knowledge: Knowledge) -> bool:
    return any(all(_satisfied(each, event, knowledge) for each in one.constraints) for one in filters)


def _satisfied(constraint: Constraint, event: Event, knowledge: Knowledge) -> bool:
    triples = list(dict.fromkeys(_triple(line) for line in event.text.split("\n")))
    objects = [object_ for _, predicate, object_ in triples if predicate == constraint.attribute]
    if constraint.bag is None:
        return any(_related(constraint, value, constraint.operands[0], knowledge) for value in objects)
    values = [member for each in objects for member in _members(each, triples)]
    pairs = [[_related(constraint, value, each, knowledge) for each in constraint.operands] for value in values]
    return bool(objects) and _paired(constraint.bag, pairs, len(constraint.operands))


def _paired(bag: str, pairs: list[list[bool]], size: int) -> bool:
    count = len(pairs)
    if (bag == "#=" and count != size) or (bag == "#<" and count > size) or (bag == "#>" and count < size):
        return False
    if bag == "#>":
        return any(all(pairs[chosen[at]][at] for at in range(size)) for chosen in permutations(range(count), size))
    return any(all(pairs[at][chosen[at]] for at in range(count)) for chosen in permutations(range(size), count))


def _members(object_: str, triples: Sequence[Triple]) -> Iterator[str]:
    if object_ == NIL:
        return
    facts = {(subject, predicate): each for subject, predicate, each in triples}
    if (object_, FIRST) not in facts:
        yield object_
        return
    while object_ != NIL:
        yield facts[object_, FIRST]
        object_ = facts[object_, REST]


def _triple(line: str) -> Triple:
    subject, predicate, object_ = line.split("\t")
    return subject, predicate, object_


def _related(constraint: Constraint, value: str, operand: tuple[str, ...], knowledge: Knowledge) -> bool:
    relation = constraint.relation
    if relation.symbol not in _ONTOLOGICAL:
        return _compared(relation.symbol, value, operand[0])
    if not is_iri(value):
        return False
    terms = (*operand, value) if relation.turned else (value, *operand)
    look: Mapping[str, Callable[..., bool]] = {
        "below": knowledge.below,
        "strictly": knowledge.strictly,
        "equivalent": knowledge.equivalent,
        "is_a": knowledge.is_a,
        "has": knowledge.has,
    }
    return look[relation.function](*terms) is not relation.negated


_ONTOLOGICAL = ("@>", "@<", "@~", "@!~", "@=", "@!=", "@*")


def _compared(op: str, value: str, operand: str) -> bool:
    left, right = _value(value), _value(operand)
    if op in _TEXTS:
        strings = isinstance(left, str) and isinstance(right, str) and is_literal(value) and is_literal(operand)
        return strings and _TEXTS[op](str(left), str(right))
    if op in ("=", "!="):
        if None in (left, right) and is_literal(value) and is_literal(operand):
            # of a literal that is not what it claims it cannot be said that it differs from another
            return op == "=" and value == operand
        return (left == right) is (op == "=")
    if isinstance(left, float) and isinstance(right, float):
        return _ORDERS[op](left, right)
    return is_literal(value) and isinstance(left, str) and isinstance(right, str) and _ORDERS[op](left, right)


_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    ">*": str.startswith,
    "*<": str.endswith,
    "*": str.__contains__,
}
_ORDERS: Mapping[str, Callable[..., bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _value(term: str) -> float | str | tuple[str] | None:
    """A number, a string, or an IRI; None for a literal that is not what it claims."""
    if is_iri(term):
        return (term,)
    parts = parse_literal(term)
    if parts.datatype == XSD + "string":
        return parts.lexical
    try:
        return float(parts.lexical)
    except ValueError:
        return None
