"""Policies: what somebody sees and what they may publish, by rules about meaning. `documents` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from triplewire.access.principals import Principal
from triplewire.access.rules import KINDS, Chapter, Kind
from triplewire.access.scopes import Scope
from triplewire.access.sights import WHOLE, Sight
from triplewire.access.verbs import Verb
from triplewire.model.terms import RDF_TYPE

_REMEMBERED = 4_096
"""Sights of as many who ask; each is made again in some 50 µs."""


@dataclass(frozen=True, eq=False)
class Policy:
    """One document of rules. Two are the same only if they are one."""

    see: Chapter
    publish: Chapter


@dataclass(frozen=True)
class Permit:
    """What somebody may publish. Events are refused whole."""

    scope: Sight
    chapter: Chapter

    def refusal(self, stream: str, graph: str, text: str) -> str | None:
        """Why an event must not be published, by the first thing that is wrong; None if it may. `graph` is its id."""
        scope, graph = self.scope, f"<{graph}>"
        if stream not in scope.streams:
            return self._refused("streams", stream, f"the stream {stream}")
        if graph not in scope.graphs:
            return self._refused("graphs", graph, f"an event of the id {graph}")
        return None if scope.leaves_events else self._refused_quad(text)

    def _refused_quad(self, text: str) -> str | None:
        for line in text.split("\n"):
            _, predicate, object_ = line.split("\t")
            if predicate not in self.scope.predicates:
                return self._refused("predicates", predicate, f"the predicate {predicate}")
            if predicate == RDF_TYPE and object_ not in self.scope.classes:
                return self._refused("classes", object_, f"an instance of {object_}")
        return None

    def _refused(self, kind: Kind, name: str, what: str) -> str:
        return f"{what} must not be published: {self.chapter.reason(kind, name)}"


def sight_of(principal: Principal, verb: Verb, policy: Policy | None) -> Sight | None:
    """What somebody sees who uses a verb (consume, subscribe or query): events of the streams on which it is granted to
    them, and of these what the policy leaves. None: they see everything."""
    seen = _seen(policy, principal.name, principal.roles, principal.patterns(verb))
    return None if seen.is_whole else seen


def permit_of(principal: Principal, policy: Policy | None) -> Permit | None:
    """What somebody may publish by the policy; whether it is granted to them is another question. None: everything."""
    return None if policy is None else _permitted(policy, principal.name, principal.roles)


@lru_cache(maxsize=_REMEMBERED)
def _seen(policy: Policy | None, name: str, roles: frozenset[str], patterns: frozenset[str]) -> Sight:
    seen = WHOLE if policy is None else _sight(policy.see.for_(name, roles))
    return seen.within(Scope.of(patterns))


@lru_cache(maxsize=_REMEMBERED)
def _permitted(policy: Policy, name: str, roles: frozenset[str]) -> Permit | None:
    chapter = policy.publish.for_(name, roles)
    scope = _sight(chapter)
    return None if scope.is_whole else Permit(scope, chapter)


def _sight(chapter: Chapter) -> Sight:
    return Sight(**{kind: chapter.scope(kind) for kind in KINDS})
