"""Ontologies: RDFS statements about classes and properties as transitively closed tables.

An RDFS rule that derives something new about data takes one triple of the data and one of the schema. So the
entailments of data and schema together are those of the data by these tables, and those of the schema alone: its
facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from triplewire.model.errors import InputError
from triplewire.model.terms import RDF, RDF_TYPE, is_literal
from triplewire.sparql.paths import Triple

ONTOLOGY_PAIRS: Final = 200_000
"""The most pairs in one table of an ontology, which grow as the square of its depth: about 50 MB, made in a second."""

TermPair = tuple[str, str]


@dataclass(frozen=True)
class TermPairs:
    """Pairs of names: lower and upper."""

    pairs: frozenset[TermPair]

    def under(self, name: str) -> frozenset[str]:
        return self._under.get(name, frozenset())

    @cached_property
    def _under(self) -> Mapping[str, frozenset[str]]:
        found: defaultdict[str, set[str]] = defaultdict(set)
        for lower, upper in self.pairs:
            found[upper].add(lower)
        return {upper: frozenset(lowers) for upper, lowers in found.items()}


@dataclass(frozen=True)
class Hierarchy:
    """A reflexive and transitive hierarchy over stated pairs (lower, upper). Each name is below itself, also an unknown
    one; names on a cycle are all below one another."""

    stated: frozenset[TermPair]

    def below(self, name: str) -> frozenset[str]:
        """The names under this one, with itself."""
        return self._below.get(name, frozenset()) | {name}

    def under(self, name: str) -> frozenset[str]:
        """The other names under this one."""
        return self._below.get(name, frozenset()) - {name}

    def above(self, name: str) -> frozenset[str]:
        """The names over this one, with itself."""
        return self._above.get(name, frozenset()) | {name}

    @cached_property
    def pairs(self) -> frozenset[TermPair]:
        """Every pair (lower, upper) of two names. Raises InputError if there are too many."""
        return frozenset((lower, upper) for lower, uppers in self._above.items() for upper in uppers if upper != lower)

    @cached_property
    def _above(self) -> Mapping[str, frozenset[str]]:
        return _close_pairs(self.stated)

    @cached_property
    def _below(self) -> Mapping[str, frozenset[str]]:
        return _close_pairs((upper, lower) for lower, upper in self.stated)


def _close_pairs(pairs: Iterable[TermPair]) -> Mapping[str, frozenset[str]]:
    steps: defaultdict[str, set[str]] = defaultdict(set)
    for start, end in pairs:
        steps[start].add(end)
    found, count = dict[str, frozenset[str]](), 0
    for name in steps:
        found[name] = _reachable(name, steps)
        count += len(found[name])
        if count > ONTOLOGY_PAIRS:
            raise InputError(f"the ontology has more than {ONTOLOGY_PAIRS} pairs in one hierarchy")
    return found


def _reachable(start: str, steps: Mapping[str, set[str]]) -> frozenset[str]:
    """Return the names that one or more steps lead to."""
    found, edge = set[str](), {start}
    while edge:
        edge = {end for name in edge for end in steps.get(name, ())} - found
        found |= edge
    return frozenset(found)


RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"

SUB_CLASS = f"<{RDFS}subClassOf>"
SUB_PROPERTY = f"<{RDFS}subPropertyOf>"
DOMAIN = f"<{RDFS}domain>"
RANGE = f"<{RDFS}range>"
SCHEMA = frozenset({SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE})

EQUIVALENCES = {f"<{OWL}equivalentClass>": SUB_CLASS, f"<{OWL}equivalentProperty>": SUB_PROPERTY}
_CLASSES = frozenset({f"<{RDFS}Class>", f"<{RDFS}Datatype>", f"<{OWL}Class>"})
_PROPERTIES = frozenset(
    {
        f"<{RDF}Property>",
        *(f"<{OWL}{kind}Property>" for kind in ("Object", "Datatype", "Annotation", "Functional", "Symmetric")),
    }
)


@dataclass(frozen=True)
class Ontology:
    """Classes, properties, and the triples about them that count. Terms are canonical N-Triples text."""

    classes: frozenset[str] = frozenset()
    properties: frozenset[str] = frozenset()
    schema: frozenset[Triple] = frozenset()
    """Triples of the four predicates in `SCHEMA`, as they were stated."""

    def __bool__(self) -> bool:
        return bool(self.classes or self.properties)

    @cached_property
    def sub_classes(self) -> Hierarchy:
        return Hierarchy(self._stated(SUB_CLASS))

    @cached_property
    def sub_properties(self) -> Hierarchy:
        return Hierarchy(self._stated(SUB_PROPERTY))

    @cached_property
    def domains(self) -> TermPairs:
        """Every (property, class): the subject of a triple with this property is of this class."""
        return self._inherited(DOMAIN)

    @cached_property
    def ranges(self) -> TermPairs:
        """Every (property, class): the object of a triple with this property, if it is no literal, is of this class."""
        return self._inherited(RANGE)

    @cached_property
    def facts(self) -> frozenset[Triple]:
        """All that follows from the schema without any data."""
        same = {(each, SUB_CLASS, each) for each in self.classes} | {
            (each, SUB_PROPERTY, each) for each in self.properties
        }
        closed = {(lower, SUB_CLASS, upper) for lower, upper in self.sub_classes.pairs} | {
            (lower, SUB_PROPERTY, upper) for lower, upper in self.sub_properties.pairs
        }
        return frozenset(_entailed_facts(self, self.schema | same | closed))

    def facts_with(self, predicate: str) -> Collection[Triple]:
        return self._facts_by_predicate.get(predicate, ())

    @cached_property
    def _facts_by_predicate(self) -> Mapping[str, Collection[Triple]]:
        found: dict[str, list[Triple]] = {}
        for each in self.facts:
            found.setdefault(each[1], []).append(each)
        return found

    def _stated(self, predicate: str) -> frozenset[TermPair]:
        return frozenset((subject, object_) for subject, each, object_ in self.schema if each == predicate)

    def _inherited(self, predicate: str) -> TermPairs:
        """Inherit domains or ranges: downwards to sub-properties, upwards to super-classes."""
        found: set[TermPair] = set()
        for property_, class_ in self._stated(predicate):
            classes = self.sub_classes.above(class_)
            found.update((lower, each) for lower in self.sub_properties.below(property_) for each in classes)
            if len(found) > ONTOLOGY_PAIRS:
                raise InputError(f"the ontology has more than {ONTOLOGY_PAIRS} pairs of property and class")
        return TermPairs(frozenset(found))


def build_ontology(triples: Iterable[Triple]) -> Ontology:
    """Build an ontology from triples; those that are not about classes or properties are ignored. Classes and
    properties that are `owl:equivalentClass` or `owl:equivalentProperty` are below one another.

    Raises InputError if the tables would be too large.
    """
    given = frozenset(triples)
    schema = _schema(given)
    ontology = Ontology(
        frozenset(_declared(given, _CLASSES)) | {each for triple in schema for each in _classes(triple)},
        frozenset(_declared(given, _PROPERTIES)) | {each for triple in schema for each in _properties(triple)},
        schema,
    )
    # computed now, so that an ontology that is too large is refused when it is registered
    _ = ontology.domains, ontology.ranges, ontology.facts
    return ontology


def _schema(triples: frozenset[Triple]) -> frozenset[Triple]:
    """Return the triples of the four predicates, also those that are entailed through their sub-properties."""
    found = frozenset(_plain(triples))
    while True:
        order = Ontology(schema=found).sub_properties
        spelled = {predicate: order.below(predicate) for predicate in SCHEMA}
        more = found | {
            (subject, predicate, object_)
            for predicate, below in spelled.items()
            if len(below) > 1
            for subject, each, object_ in triples
            if each in below and not is_literal(object_)
        }
        if more == found:
            return found
        found = more


def _plain(triples: Iterable[Triple]) -> Iterator[Triple]:
    for subject, predicate, object_ in triples:
        if is_literal(object_):
            continue
        if predicate in SCHEMA:
            yield subject, predicate, object_
        elif predicate in EQUIVALENCES:
            yield subject, EQUIVALENCES[predicate], object_
            yield object_, EQUIVALENCES[predicate], subject


def _declared(triples: Iterable[Triple], kinds: frozenset[str]) -> Iterator[str]:
    return (subject for subject, predicate, object_ in triples if predicate == RDF_TYPE and object_ in kinds)


def _classes(triple: Triple) -> tuple[str, ...]:
    subject, predicate, object_ = triple
    return (subject, object_) if predicate == SUB_CLASS else (object_,) if predicate in (DOMAIN, RANGE) else ()


def _properties(triple: Triple) -> tuple[str, ...]:
    subject, predicate, object_ = triple
    return (subject, object_) if predicate == SUB_PROPERTY else (subject,) if predicate in (DOMAIN, RANGE) else ()


def _entailed_facts(ontology: Ontology, triples: Iterable[Triple]) -> Iterator[Triple]:
    """The triples and what follows from each: by super-properties, domains, ranges and super-classes."""
    domains, ranges = _by_property(ontology.domains.pairs), _by_property(ontology.ranges.pairs)
    kinds = ontology.sub_properties.above(RDF_TYPE)
    for subject, predicate, object_ in triples:
        yield from ((subject, each, object_) for each in ontology.sub_properties.above(predicate))
        types = [(subject, each) for each in domains.get(predicate, ())]
        types += [(object_, each) for each in ranges.get(predicate, ())]
        yield from ((subject, kind, class_) for subject, class_ in types for kind in kinds)


def _by_property(pairs: Iterable[TermPair]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for property_, class_ in pairs:
        found.setdefault(property_, []).append(class_)
    return found
