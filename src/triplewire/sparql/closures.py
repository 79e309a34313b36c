"""Closures: all that an ontology says of two names, as rows to look things up in.

What stands in the rows is told in `compile.ontologies`, which reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from triplewire.config import limits
from triplewire.model.errors import InputError
from triplewire.model.terms import RDF_TYPE, is_iri
from triplewire.sparql.hierarchies import Hierarchy
from triplewire.sparql.inferences import SAME, inferred
from triplewire.sparql.ontologies import OWL, RDFS, SUB_CLASS, SUB_PROPERTY, Triple

Row = tuple[str, str, str]
"""The name of a relation or the term of a property; a lower and an upper term."""

_NO_FACTS = (RDF_TYPE, f"<{RDFS}", f"<{OWL}")
"""Starts of predicates whose triples are about the schema, or have a relation of their own."""


def closure(triples: Iterable[Triple]) -> Sequence[Row]:
    """The rows that these triples and all that follows from them make, each once.

    Raises InputError if there are more than `limits.CLOSURE_ROWS`, or if what they say is too large to be closed.
    """
    rows = sorted(set(_rows(inferred(triples))))
    if len(rows) > limits.CLOSURE_ROWS:
        raise InputError(f"{len(rows)} things follow from the ontologies, over the limit of {limits.CLOSURE_ROWS}")
    return rows


def _rows(triples: frozenset[Triple]) -> Iterator[Row]:
    for predicate in (SUB_CLASS, SUB_PROPERTY):
        order = Hierarchy(
            frozenset((subject, object_) for subject, each, object_ in triples if each == predicate)
        ).pairs
        for lower, upper in order:
            yield "below", lower, upper
            yield "equivalent" if (upper, lower) in order else "strictly", lower, upper
    for subject, predicate, object_ in triples:
        if predicate == SAME and subject != object_:
            yield "equivalent", subject, object_
        elif predicate == RDF_TYPE and is_iri(object_):
            yield "is_a", subject, object_
        elif not predicate.startswith(_NO_FACTS):
            yield predicate, subject, object_
