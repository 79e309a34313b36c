"""Ontologies: what they say of names, looked up for one term at a time.

What stands in the rows is told in `sparql.compile.ontologies`. None is an error: what is no IRI is neither in a
relation nor not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from triplewire.matching.singles.facts import Fact, Undecided, text_of
from triplewire.matching.singles.runs import Evaluate, Row, Run, Test
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.functions import REFLEXIVE
from triplewire.sparql.entailment.owl_rl import ClosureRow as Said


class Ontologies:
    """All that is loaded, as rows of relation, lower and upper term. To look things up they are made into a set when
    something is first sought: 40 MB for as many rows as there may be, which whoever asks for no ontology does without.
    """

    def __init__(self, rows: Sequence[Said] = ()) -> None:
        self._rows = rows

    @cached_property
    def _known(self) -> frozenset[Said]:
        return frozenset(self._rows)

    def say(self, relation: str, lower: str, upper: str) -> bool:
        return (relation, lower, upper) in self._known


def related(relation: str, lower: Evaluate, upper: Evaluate) -> Test:
    """Whether two names are in a relation."""
    reflexive = REFLEXIVE[relation]

    def found(run: Run, row: Row) -> bool | None:
        one, other = _name(lower(run, row)), _name(upper(run, row))
        if one is None or other is None:
            return None
        return (reflexive and one == other) or run.known.say(relation, one, other)

    return found


def having(subject: Evaluate, property_: Evaluate, object_: Evaluate) -> Test:
    """Whether a subject has an object for a property."""

    def found(run: Run, row: Row) -> bool | None:
        one, name, other = _name(subject(run, row)), _name(property_(run, row)), object_(run, row)
        if one is None or name is None:
            return None
        if other is None:
            raise Undecided
        return run.known.say(name, one, text_of(other))

    return found


def _name(given: Fact | None) -> str | None:
    """The term of an IRI."""
    if given is None:
        return None
    if given.family is None and (given.text or "").startswith("<"):
        raise Undecided
    return text_of(given) if given.family is Family.IRI else None
