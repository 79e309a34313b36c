"""Rules: for whom, and what of each kind of thing is allowed or denied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from triplewire.access.scopes import ALL, Scope, covers

Kind: TypeAlias = Literal["streams", "graphs", "classes", "predicates"]
KINDS: tuple[Kind, ...] = ("streams", "graphs", "classes", "predicates")
Effect: TypeAlias = Literal["allow", "deny"]


@dataclass(frozen=True)
class Selector:
    """Those of a role, or of a name, by a pattern. `*` of any kind is everybody."""

    by: Literal["role", "name", "any"]
    pattern: str = ALL

    def chooses(self, name: str, roles: frozenset[str]) -> bool:
        match self.by:
            case "role":
                return any(covers(self.pattern, role) for role in roles)
            case "name":
                return covers(self.pattern, name)
        return True

    def covers(self, other: Selector) -> bool:
        """Is everybody whom the other chooses chosen by this?"""
        return self.by == "any" or (self.by == other.by and covers(self.pattern, other.pattern))

    def __str__(self) -> str:
        return ALL if self.by == "any" else f"{self.by}:{self.pattern}"


@dataclass(frozen=True)
class Entry:
    """One pattern that a rule allows or denies: of streams as names are, of all else as terms are. `written` is how it
    stands in the file."""

    effect: Effect
    kind: Kind
    pattern: str
    written: str

    def __str__(self) -> str:
        return f"{self.effect}.{self.kind} {self.written!r}"


@dataclass(frozen=True)
class Rule:
    """Speaks to whom a selector of `who` chooses and none of `but` does."""

    name: str
    who: tuple[Selector, ...]
    but: tuple[Selector, ...]
    entries: tuple[Entry, ...]

    def speaks_to(self, name: str, roles: frozenset[str]) -> bool:
        chosen = any(each.chooses(name, roles) for each in self.who)
        return chosen and not any(each.chooses(name, roles) for each in self.but)

    def patterns(self, effect: Effect, kind: Kind) -> Iterator[str]:
        return (each.pattern for each in self.entries if (each.effect, each.kind) == (effect, kind))


@dataclass(frozen=True)
class Chapter:
    """All rules about seeing, or all about publishing. What is denied to somebody is denied whatever else is said; what
    is not, but allowed, is allowed; of the rest `defaults` says what holds."""

    defaults: tuple[tuple[Kind, Effect], ...]
    rules: tuple[Rule, ...]

    def default(self, kind: Kind) -> Effect:
        return dict(self.defaults)[kind]

    def for_(self, name: str, roles: frozenset[str]) -> Chapter:
        """What speaks to somebody."""
        return Chapter(self.defaults, tuple(rule for rule in self.rules if rule.speaks_to(name, roles)))

    def scope(self, kind: Kind) -> Scope:
        """What all rules together leave of a kind."""
        base = [ALL] if self.default(kind) == "allow" else []
        allowed = [each for rule in self.rules for each in rule.patterns("allow", kind)]
        return Scope.of([*base, *allowed], [each for rule in self.rules for each in rule.patterns("deny", kind)])

    def reason(self, kind: Kind, name: str) -> str:
        """Why something that is not in the scope is not."""
        for rule in self.rules:
            if any(covers(each, name) for each in rule.patterns("deny", kind)):
                return f"the rule {rule.name!r} of the policy denies it"
        return "no rule of the policy allows it"
