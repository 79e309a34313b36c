"""OWL 2 RL inference over the triples of an ontology, and its closure as rows for look-ups (see `compiler.functions`).

The rules are those of the library `reasonable`, which is loaded on first use. Schema-only rules and property chains,
which it lacks, are applied here, before and around it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from triplewire.model.errors import InputError
from triplewire.model.terms import RDF, RDF_TYPE, is_iri
from triplewire.sparql.entailment import ontologies
from triplewire.sparql.paths import Triple

CLOSURE_ROWS: Final = 1_000_000
"""The rows of the closure of all ontologies together. Every worker computes it, in some seconds, and holds it: about
150 MB."""

SAME_AS = f"<{ontologies.OWL}sameAs>"
_TRANSITIVE = f"<{ontologies.OWL}TransitiveProperty>"
_CHAIN = f"<{ontologies.OWL}propertyChainAxiom>"
_CLASS, _THING = f"<{ontologies.OWL}Class>", f"<{ontologies.OWL}Thing>"
_FIRST, _REST = f"<{RDF}first>", f"<{RDF}rest>"
_VOCABULARIES = tuple(f"<{each}" for each in (RDF, ontologies.OWL, ontologies.RDFS))


def infer_triples(triples: Iterable[Triple]) -> frozenset[Triple]:
    """The triples and all that follows. Raises InputError where hierarchies in them are too large to be closed."""
    given = frozenset(triples)
    _check_size(given)
    lists = _Lists(given)
    known = given | frozenset(_of_schema(given, lists))
    chains = [(subject, lists.members(head)) for subject, predicate, head in given if predicate == _CHAIN]
    while True:
        closed = _reason(known)
        more = frozenset(_apply_chains(chains, closed)) - closed
        if not more:
            return closed
        known |= more


def _check_size(triples: frozenset[Triple]) -> None:
    """Check the size of hierarchies beforehand, because the library computes any closure."""
    ontologies.build_ontology(triples)
    transitive = {subject for subject, predicate, kind in triples if predicate == RDF_TYPE and kind == _TRANSITIVE}
    for property_ in (*sorted(transitive), SAME_AS):
        pairs = {(subject, object_) for subject, predicate, object_ in triples if predicate == property_}
        turned = {(object_, subject) for subject, object_ in pairs} if property_ == SAME_AS else set[tuple[str, str]]()
        _ = ontologies.Hierarchy(frozenset(pairs | turned)).pairs


def _of_schema(triples: frozenset[Triple], lists: _Lists) -> Iterator[Triple]:
    """Rules scm-eqc1, scm-eqp1, scm-cls, scm-int, scm-uni and cls-oo."""
    for subject, predicate, object_ in triples:
        if predicate in ontologies.EQUIVALENCES:
            yield subject, ontologies.EQUIVALENCES[predicate], object_
            yield object_, ontologies.EQUIVALENCES[predicate], subject
        elif predicate == RDF_TYPE and object_ == _CLASS:
            yield subject, ontologies.SUB_CLASS, _THING
        elif predicate in _OF_LISTS:
            for member in lists.members(object_):
                yield _OF_LISTS[predicate](subject, member)


_OF_LISTS: Mapping[str, Callable[[str, str], Triple]] = {
    f"<{ontologies.OWL}intersectionOf>": lambda whole, part: (whole, ontologies.SUB_CLASS, part),
    f"<{ontologies.OWL}unionOf>": lambda whole, part: (part, ontologies.SUB_CLASS, whole),
    f"<{ontologies.OWL}oneOf>": lambda whole, part: (part, RDF_TYPE, whole),
}


class _Lists:
    """The lists that stand among triples."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        cells = [each for each in triples if each[1] in (_FIRST, _REST)]
        self._firsts = {subject: object_ for subject, predicate, object_ in cells if predicate == _FIRST}
        self._rests = {subject: object_ for subject, predicate, object_ in cells if predicate == _REST}

    def members(self, head: str) -> list[str]:
        """Return a list's members in order; none if it is no list."""
        found, seen = list[str](), set[str]()
        while head in self._firsts and head not in seen:
            seen.add(head)
            found.append(self._firsts[head])
            head = self._rests.get(head, "")
        return found


def _apply_chains(chains: Iterable[tuple[str, list[str]]], triples: frozenset[Triple]) -> Iterator[Triple]:
    """Rule prp-spo2."""
    for property_, steps in chains:
        ends: Mapping[str, set[str]] | None = None
        for step in steps:
            links = _links(step, triples)
            ends = links if ends is None else {at: _follow(reached, links) for at, reached in ends.items()}
        for start, reached in (ends or {}).items():
            yield from ((start, property_, end) for end in reached)


def _links(property_: str, triples: frozenset[Triple]) -> Mapping[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for subject, predicate, object_ in triples:
        if predicate == property_:
            found[subject].add(object_)
    return found


def _follow(nodes: Iterable[str], links: Mapping[str, set[str]]) -> set[str]:
    return {end for node in nodes for end in links.get(node, ())}


def _reason(triples: frozenset[Triple]) -> frozenset[Triple]:
    """Run the library. Terms are passed as numbers: it does not know our form of literals, and crashes on an invalid
    IRI."""
    # loaded here, because only processes that use an ontology need it
    from reasonable import PyReasoner

    names = {term: _name(term, number) for number, term in enumerate(sorted({each for row in triples for each in row}))}
    terms = {name: term for term, name in names.items()}
    reasoner = PyReasoner()
    reasoner.from_graph([(names[subject], names[predicate], names[object_]) for subject, predicate, object_ in triples])
    inferred = (((terms.get(str(each)) or f"<{each}>") for each in row) for row in reasoner.reason())
    return frozenset((subject, predicate, object_) for subject, predicate, object_ in inferred if is_iri(subject))


def _name(term: str, number: int) -> str:
    return term[1:-1] if term.startswith(_VOCABULARIES) else f"urn:{number}"


ClosureRow = tuple[str, str, str]
"""The name of a relation or the term of a property; a lower and an upper term."""

_NO_FACTS = (RDF_TYPE, f"<{ontologies.RDFS}", f"<{ontologies.OWL}")
"""Prefixes of predicates whose triples are about the schema, or have a relation of their own."""


def compute_closure(triples: Iterable[Triple], limit: int = CLOSURE_ROWS) -> Sequence[ClosureRow]:
    """Return the rows of the closure of these triples, each once.

    Raises InputError if there are more than `limit`, or if a hierarchy is too large to be closed.
    """
    rows = sorted(set(_rows(infer_triples(triples))))
    if len(rows) > limit:
        raise InputError(f"the closure of the ontologies has {len(rows)} rows, over the limit of {limit}")
    return rows


def _rows(triples: frozenset[Triple]) -> Iterator[ClosureRow]:
    for predicate in (ontologies.SUB_CLASS, ontologies.SUB_PROPERTY):
        order = ontologies.Hierarchy(
            frozenset((subject, object_) for subject, each, object_ in triples if each == predicate)
        ).pairs
        for lower, upper in order:
            yield "below", lower, upper
            yield "equivalent" if (upper, lower) in order else "strictly", lower, upper
    for subject, predicate, object_ in triples:
        if predicate == SAME_AS and subject != object_:
            yield "equivalent", subject, object_
        elif predicate == RDF_TYPE and is_iri(object_):
            yield "is_a", subject, object_
        elif not predicate.startswith(_NO_FACTS):
            yield predicate, subject, object_
