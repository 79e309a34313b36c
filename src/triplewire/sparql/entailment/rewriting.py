"""RDFS entailment by query rewriting: a query whose answers include what follows from an ontology.

Each triple pattern that the ontology concerns becomes the union of the ways in which its triple may be entailed; each
triple counts once. Data are read as they are: the tables of the ontology are joined as VALUES.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from itertools import count
from typing import Final

from triplewire.model.errors import QueryLimit
from triplewire.model.terms import RDF_TYPE
from triplewire.sparql import algebra
from triplewire.sparql.algebra import Apply, Const, Node, Operator, Path, Pattern, Query, Var
from triplewire.sparql.entailment.ontologies import Hierarchy, Ontology, TermPairs
from triplewire.sparql.paths import evaluate_path, translate_negated, translate_path
from triplewire.sparql.traversal import bound_variables, iterate_parts, transform_operators

ENTAILMENT_ROWS: Final = 20_000
"""The most rows of an ontology that one pattern of a query is joined with. They become a part of its SQL: at worst 2
MB, which take about four seconds to generate."""

Row = tuple[str, ...]


def rewrite_query(query: Query, ontology: Ontology) -> Query:
    """Rewrite a query to answer over its graphs and everything that they entail by the ontology. Patterns that the
    ontology does not concern stay as they are.

    Raises QueryLimit if a pattern would be joined with too much of the ontology.
    """
    if not ontology:
        return query
    return replace(query, where=transform_operators(query.where, _EntailmentRewriter(ontology).operator))


class _EntailmentRewriter:
    """Rewrites the operators of one query. Variables that it makes start with `.~`, and no two are the same."""

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._numbers = count(1)

    def operator(self, operator: Operator) -> Operator:
        match operator:
            case algebra.Basic(patterns):
                return self._basic(patterns)
            case algebra.Reach(path=algebra.Repeat() as path):
                return self._repeated(operator, path)
            case algebra.Reach(path=algebra.Negated() as path):
                plain = translate_negated(operator, path, lambda: self._new("p"))
                return transform_operators(plain, self.operator)
            case algebra.Reach():
                plain = translate_path(operator, lambda: Var(f".between{next(self._numbers)}"))
                changed = transform_operators(plain, self.operator)
                return operator if changed == plain else changed
        return operator

    def _basic(self, patterns: tuple[Pattern, ...]) -> Operator:
        ways = [(pattern, self._ways(pattern)) for pattern in patterns]
        kept = tuple(pattern for pattern, found in ways if found == [algebra.Basic((pattern,))])
        parts = [_once(found, pattern) for pattern, found in ways if found != [algebra.Basic((pattern,))]]
        return reduce(algebra.Join, parts if parts and not kept else [algebra.Basic(kept), *parts])

    def _ways(self, pattern: Pattern) -> list[Operator]:
        """Return the ways in which the triple may be entailed; if the ontology does not concern it, only by being
        stored."""
        if pattern.predicate == Const(RDF_TYPE) and isinstance(pattern.object, Const):
            return [*self._classed(pattern.subject, pattern.object, own=True), *self._by_facts(pattern)]
        return [*self._stated(pattern), *self._typed(pattern), *self._by_facts(pattern)]

    def _stated(self, pattern: Pattern) -> list[Operator]:
        """Entail by a triple with the same property or a sub-property (rdfs7)."""
        step, order = self._new("p"), self._ontology.sub_properties
        narrow = replace(pattern, predicate=step)
        if isinstance(pattern.predicate, Var):
            return [algebra.Basic((pattern,)), *_along(narrow, (step.name, pattern.predicate.name), order.pairs)]
        return _along(narrow, (step.name,), ((each,) for each in order.below(_term(pattern.predicate))))

    def _typed(self, pattern: Pattern) -> list[Operator]:
        """Entail a type by class, domain and range, if the predicate may be rdf:type."""
        kinds = self._ontology.sub_properties.above(RDF_TYPE)
        if isinstance(pattern.predicate, Var):
            bound = algebra.Values((pattern.predicate.name,), _rows((each,) for each in kinds))
            return [algebra.Join(each, bound) for each in self._classed(pattern.subject, pattern.object)]
        return self._classed(pattern.subject, pattern.object) if _term(pattern.predicate) in kinds else []

    def _classed(self, subject: Node, class_: Node, *, own: bool = False) -> list[Operator]:
        """Entail a type by a sub-class, or by the domain or range of another triple's property (rdfs9, rdfs2,
        rdfs3)."""
        step, other, ontology = self._new("p"), self._new("o"), self._ontology
        ways = self._below(subject, class_, own=own)
        ways += _along(Pattern(subject, step, other), *_paired(step, class_, ontology.domains))
        ranged = _along(Pattern(other, step, subject), *_paired(step, class_, ontology.ranges))
        # a literal is no subject
        nodes = Apply("||", (Apply("isiri", (subject,)), Apply("isblank", (subject,))))
        return ways + ([algebra.Filter(each, (nodes,)) for each in ranged] if isinstance(subject, Var) else ranged)

    def _below(self, subject: Node, class_: Node, *, own: bool) -> list[Operator]:
        """Entail a type by a sub-class; with `own`, also by the class itself, which is a constant then."""
        lower, step, ontology = self._new("c"), self._new("p"), self._ontology
        names, rows = _paired(lower, class_, ontology.sub_classes)
        rows = (*rows, (_term(class_),)) if own else rows
        kinds = [(each,) for each in ontology.sub_properties.below(RDF_TYPE)]
        if len(names) == len(rows) == 1:
            return _along(Pattern(subject, step, Const(rows[0][0])), (step.name,), kinds)
        ways = _along(Pattern(subject, step, lower), (step.name,), kinds) if rows else []
        return [_met(each, names, rows) for each in ways]

    def _by_facts(self, pattern: Pattern) -> list[Operator]:
        """Entail by a fact of the ontology itself."""
        ontology, predicate = self._ontology, pattern.predicate
        facts = ontology.facts if isinstance(predicate, Var) else ontology.facts_with(_term(predicate))
        return _stating(pattern.triple, facts)

    def _repeated(self, reach: algebra.Reach, path: algebra.Repeat) -> Operator:
        """Rewrite a repeated path: data are matched by sub-properties, facts by themselves. Each pair counts once
        already."""
        wide = replace(reach, path=self._widened(path))
        links = [part.predicate.term for part in iterate_parts(path) if isinstance(part, algebra.Link)]
        facts = frozenset(each for link in links for each in self._ontology.facts_with(link))
        if not facts:
            return wide
        _check(facts)
        return _once([wide, *_stating((reach.subject, reach.object), evaluate_path(path, facts))], reach)

    def _widened(self, path: Path) -> Path:
        match path:
            case algebra.Link(predicate):
                below = sorted(self._ontology.sub_properties.below(predicate.term))
                return path if len(below) == 1 else algebra.Either(tuple(algebra.Link(Const(each)) for each in below))
            case algebra.Inverse(inner) | algebra.Repeat(inner):
                return replace(path, path=self._widened(inner))
            case algebra.Chain(paths) | algebra.Either(paths):
                return replace(path, paths=tuple(self._widened(each) for each in paths))
        return path

    def _new(self, letter: str) -> Var:
        return Var(f".~{next(self._numbers)}{letter}")


def _paired(lower: Var, upper: Node, table: TermPairs | Hierarchy) -> tuple[Row, tuple[Row, ...]]:
    """Return names and rows of a table of pairs; a constant removes one column."""
    if isinstance(upper, Var):
        return (lower.name, upper.name), _rows(table.pairs)
    return (lower.name,), _rows((each,) for each in table.under(_term(upper)))


def _along(pattern: Pattern, names: Row, rows: Iterable[Row]) -> list[Operator]:
    """Return the ways to match the pattern with a predicate of the rows, which is their first column. Header predicates
    must be named in the pattern, as must a single one."""
    rows = _rows(rows)
    stored = tuple(row for row in rows if row[0] not in algebra.HEADER_PREDICATES)
    apart = [row for row in rows if row[0] in algebra.HEADER_PREDICATES or len(stored) == 1]
    ways: list[Operator] = [
        _met(algebra.Basic((replace(pattern, predicate=Const(row[0])),)), names[1:], (row[1:],)) for row in apart
    ]
    return ways + ([_met(algebra.Basic((pattern,)), names, stored)] if len(stored) > 1 else [])


def _met(operator: Operator, names: Row, rows: tuple[Row, ...]) -> Operator:
    return algebra.Join(operator, algebra.Values(names, rows)) if names else operator


def _stating(nodes: tuple[Node, ...], rows: Iterable[Row]) -> list[Operator]:
    """Return the rows that match the nodes, as solutions."""
    names = tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, Var)))
    found = {tuple(bound[name] for name in names) for row in rows if (bound := _bound(nodes, row)) is not None}
    return [algebra.Values(names, _rows(found))] if found else []


def _bound(nodes: tuple[Node, ...], row: Row) -> dict[str, str] | None:
    """Return the bindings of the variables among the nodes; None if the row does not match."""
    bound: dict[str, str] = {}
    for node, term in zip(nodes, row, strict=True):
        if (bound.setdefault(node.name, term) if isinstance(node, Var) else _term(node)) != term:
            return None
    return bound


def _once(ways: list[Operator], pattern: Pattern | algebra.Reach) -> Operator:
    """Return the union of the ways, each solution once."""
    whole = algebra.Basic((pattern,)) if isinstance(pattern, Pattern) else pattern
    return algebra.Select(reduce(algebra.Union, ways), tuple(sorted(bound_variables(whole))), distinct=True)


def _rows(rows: Iterable[Row]) -> tuple[Row, ...]:
    found = tuple(sorted(rows))
    _check(found)
    return found


def _check(rows: tuple[Row, ...] | frozenset[Row]) -> None:
    if len(rows) > ENTAILMENT_ROWS:
        raise QueryLimit(
            f"a pattern meets {len(rows)} rows of the ontology, over the limit of {ENTAILMENT_ROWS}; "
            "name a class or a property in it, or load a smaller ontology"
        )


def _term(node: Node) -> str:
    """Return a node's term. A query over history has no parameters."""
    return node.term if isinstance(node, Const) else ""
