"""An oracle for RDFS entailment: the rules of the specification, applied until nothing is new."""

from __future__ import annotations

from collections.abc import Iterable

RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE = (
    f"<http://www.w3.org/2000/01/rdf-schema#{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")
)

Triple = tuple[str, str, str]


def closed_schema(schema: Iterable[Triple]) -> frozenset[Triple]:
    """Return a schema with everything that it entails alone."""
    known = set(schema)
    for subject, predicate, object_ in list(known):
        known |= {(each, SUB_CLASS, each) for each in (subject, object_) if predicate == SUB_CLASS}
        known |= {(each, SUB_PROPERTY, each) for each in (subject, object_) if predicate == SUB_PROPERTY}
        if predicate in (DOMAIN, RANGE):
            known |= {(subject, SUB_PROPERTY, subject), (object_, SUB_CLASS, object_)}
    while True:
        more = known | {each for triple in known for each in _consequences(triple, known)}
        if more == known:
            return frozenset(known)
        known = more


def closed(data: Iterable[Triple], schema: frozenset[Triple]) -> frozenset[Triple]:
    """Return data and a closed schema with everything that they entail."""
    known = set(data)
    while True:
        more = known | {each for triple in known for each in _consequences(triple, schema)}
        if more == known:
            return frozenset(known) | schema
        known = more


def _consequences(triple: Triple, schema: Iterable[Triple]) -> Iterable[Triple]:
    subject, predicate, object_ = triple
    for left, means, right in schema:
        if means == DOMAIN and left == predicate:
            yield subject, RDF_TYPE, right  # rdfs2
        if means == RANGE and left == predicate and not object_.startswith('"'):
            yield object_, RDF_TYPE, right  # rdfs3
        if means == SUB_PROPERTY and left == predicate:
            yield subject, right, object_  # rdfs7
        if means == SUB_CLASS and predicate == RDF_TYPE and left == object_:
            yield subject, RDF_TYPE, right  # rdfs9
        if means == predicate and predicate in (SUB_CLASS, SUB_PROPERTY) and left == object_ and _of(schema, triple):
            yield subject, predicate, right  # rdfs5, rdfs11


def _of(schema: Iterable[Triple], triple: Triple) -> bool:
    """Transitivity is the schema's: data that use its words are data."""
    return triple in schema
