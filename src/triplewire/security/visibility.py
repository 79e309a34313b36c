"""Row-level security: the events and triples that a principal may see, and the policy rules that say so.

```
event ── stream or graph hidden? ── yes ──▶ the event is dropped
           │ no
           ▼ each quad:
             predicate hidden?                                        ┐
             subject an instance, in this event, of a hidden class,   │
               or object such an instance?                            ├── yes ──▶ the quad is dropped
             object a triple term, while predicates or classes        │
               are hidden?                                            ┘
           │ none left? ── yes ──▶ the event is dropped
           ▼
         the quads that are left, in their order
```

A visibility is a pure function of one event. A triple term says in one object what quads say, so it is hidden from
everyone who may not see all predicates and classes. Patterns are exact names, or name prefixes followed by `*`; `*`
alone matches all names. Stream names are written as they are; IRIs stand in angle brackets, which a prefix opens but
does not close: `<https://example.org/ns#*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from triplewire.model.terms import RDF_TYPE

ALL = "*"


@dataclass(frozen=True)
class PatternSet:
    """The names that an allowed pattern covers and no denied one does. Made by `of` it is in its shortest form, so that
    two of one meaning are equal, but for what only a longer look would tell."""

    allowed: tuple[str, ...] = (ALL,)
    denied: tuple[str, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[str], denied: Iterable[str] = ()) -> PatternSet:
        deny = _minimize(denied)
        allow = tuple(each for each in _minimize(allowed) if not is_covered(each, deny))
        return cls(allow, tuple(each for each in deny if any(overlaps(each, other) for other in allow)))

    def __contains__(self, name: str) -> bool:
        (allowed, allowed_starts), (denied, denied_starts) = self._parted
        if name in denied or name.startswith(denied_starts):
            return False
        return name in allowed or name.startswith(allowed_starts)

    def met(self, other: PatternSet) -> PatternSet:
        """The names that match both."""
        pairs = ((one, two) for one in self.allowed for two in other.allowed if overlaps(one, two))
        return PatternSet.of((two if covers(one, two) else one for one, two in pairs), (*self.denied, *other.denied))

    @cached_property
    def is_all(self) -> bool:
        return self == EVERYTHING

    @property
    def is_empty(self) -> bool:
        return not self.allowed

    @cached_property
    def _parted(self) -> tuple[tuple[frozenset[str], tuple[str, ...]], tuple[frozenset[str], tuple[str, ...]]]:
        return split_patterns(self.allowed), split_patterns(self.denied)


EVERYTHING = PatternSet()
NOTHING = PatternSet(())


def split_patterns(patterns: Iterable[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names among patterns, and the beginnings of names."""
    known = tuple(patterns)
    exact = frozenset(each for each in known if not each.endswith(ALL))
    return exact, tuple(each[:-1] for each in known if each.endswith(ALL))


def covers(pattern: str, other: str) -> bool:
    """Is every name of the other one of the pattern's?"""
    if pattern.endswith(ALL):
        return other.startswith(pattern[:-1])
    return pattern == other


def is_covered(pattern: str, by: Iterable[str]) -> bool:
    return any(covers(each, pattern) for each in by)


def overlaps(one: str, two: str) -> bool:
    """Is there a name of both? Of two beginnings one is then the beginning of the other."""
    return covers(one, two) or covers(two, one)


def _minimize(patterns: Iterable[str]) -> tuple[str, ...]:
    """Without those that others cover, in order."""
    kept: list[str] = []
    for each in sorted(set(patterns), key=lambda pattern: (not pattern.endswith(ALL), len(pattern), pattern)):
        if not is_covered(each, kept):
            kept.append(each)
    return tuple(sorted(kept))


ResourceKind: TypeAlias = Literal["streams", "graphs", "classes", "predicates"]
RESOURCE_KINDS: tuple[ResourceKind, ...] = ("streams", "graphs", "classes", "predicates")
Effect: TypeAlias = Literal["allow", "deny"]


@dataclass(frozen=True)
class Selector:
    """The principals of a role or a name, by a pattern. `*` is everybody."""

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
class RuleEntry:
    """One pattern that a rule allows or denies: of streams as names are, of all else as terms are. `written` is how it
    stands in the file."""

    effect: Effect
    kind: ResourceKind
    pattern: str
    written: str

    def __str__(self) -> str:
        return f"{self.effect}.{self.kind} {self.written!r}"


@dataclass(frozen=True)
class PolicyRule:
    """Speaks to whom a selector of `who` chooses and none of `but` does."""

    name: str
    who: tuple[Selector, ...]
    but: tuple[Selector, ...]
    entries: tuple[RuleEntry, ...]

    def speaks_to(self, name: str, roles: frozenset[str]) -> bool:
        chosen = any(each.chooses(name, roles) for each in self.who)
        return chosen and not any(each.chooses(name, roles) for each in self.but)

    def patterns(self, effect: Effect, kind: ResourceKind) -> Iterator[str]:
        return (each.pattern for each in self.entries if (each.effect, each.kind) == (effect, kind))


@dataclass(frozen=True)
class RuleSet:
    """All rules for visibility, or all for publishing. A denial overrides every permission; for names without either,
    `defaults` decides."""

    defaults: tuple[tuple[ResourceKind, Effect], ...]
    rules: tuple[PolicyRule, ...]

    def default(self, kind: ResourceKind) -> Effect:
        return dict(self.defaults)[kind]

    def for_(self, name: str, roles: frozenset[str]) -> RuleSet:
        """The rules that apply to a principal."""
        return RuleSet(self.defaults, tuple(rule for rule in self.rules if rule.speaks_to(name, roles)))

    def scope(self, kind: ResourceKind) -> PatternSet:
        """The names of a kind that the rules allow."""
        base = [ALL] if self.default(kind) == "allow" else []
        allowed = [each for rule in self.rules for each in rule.patterns("allow", kind)]
        return PatternSet.of([*base, *allowed], [each for rule in self.rules for each in rule.patterns("deny", kind)])

    def reason(self, kind: ResourceKind, name: str) -> str:
        """Why something that is not in the scope is not."""
        for rule in self.rules:
            if any(covers(each, name) for each in rule.patterns("deny", kind)):
                return f"the rule {rule.name!r} of the policy denies it"
        return "no rule of the policy allows it"


TRIPLE_TERM = "<<"
_TYPE = f"\t{RDF_TYPE}\t"
_REMEMBERED_PREDICATES = 4_096
"""Predicates of which a visibility remembers whether they are in it: some 1 MB."""


@dataclass(frozen=True)
class Visibility:
    """The visible streams by name, and the visible graphs, classes and predicates as terms. Principals with equal
    visibilities can share everything that is computed for them."""

    streams: PatternSet = EVERYTHING
    graphs: PatternSet = EVERYTHING
    classes: PatternSet = EVERYTHING
    predicates: PatternSet = EVERYTHING

    @property
    def is_whole(self) -> bool:
        """Is everything visible?"""
        return self.streams.is_all and self.leaves_streams

    @property
    def is_blind(self) -> bool:
        """Is nothing ever visible?"""
        return self.streams.is_empty or self.graphs.is_empty or self.predicates.is_empty

    @cached_property
    def leaves_events(self) -> bool:
        """Is a visible event always visible whole?"""
        return self.classes.is_all and self.predicates.is_all

    @property
    def leaves_streams(self) -> bool:
        """Is a visible stream always visible whole? Then its counts reveal nothing that is hidden."""
        return self.graphs.is_all and self.leaves_events

    def within(self, streams: PatternSet) -> Visibility:
        """This visibility, limited to some streams. All that show nothing are `NONE_VISIBLE`."""
        made = replace(self, streams=self.streams.met(streams))
        return NONE_VISIBLE if made.is_blind else made

    def sees_event(self, stream: str, graph: str) -> bool:
        """Whether stream and graph are visible. `graph` is the event's id. Quads are not considered."""
        return stream in self.streams and f"<{graph}>" in self.graphs

    def visible(self, text: str) -> str | None:
        """The visible part of an event's text, if its stream and graph are visible; None if there is none."""
        # A search for what is denied is far quicker than parsing.
        if self.leaves_events or (self.marks is not None and not any(mark in text for mark in self.marks)):
            return text
        lines = text.split("\n")
        left = self._by_predicate(lines) if self.classes.is_all else self._by_all(lines)
        return text if len(left) == len(lines) else "\n".join(left) or None

    def _by_predicate(self, lines: list[str]) -> list[str]:
        """The visible lines if all classes are visible. There are few predicates, so the answer for each is cached."""
        known = self._known
        if len(known) > _REMEMBERED_PREDICATES:
            known.clear()
        left = list[str]()
        for line in lines:
            predicate = line.split("\t", 2)[1]
            seen = known.get(predicate)
            if seen is None:
                seen = known[predicate] = predicate in self.predicates
            if seen and f"\t{TRIPLE_TERM}" not in line:
                left.append(line)
        return left

    def _by_all(self, lines: list[str]) -> list[str]:
        parted = [line.split("\t") for line in lines]
        hidden = self._hidden(parted)
        return [line for line, parts in zip(lines, parted, strict=True) if self._sees(parts, hidden)]

    @cached_property
    def _known(self) -> dict[str, bool]:
        return {}

    def redacted(self, stream: str, graph: str, text: str) -> str | None:
        """The visible part of an event, as text; None if it is hidden."""
        return self.visible(text) if self.sees_event(stream, graph) else None

    def _hidden(self, lines: list[list[str]]) -> set[str]:
        """The instances of hidden classes."""
        if self.classes.is_all:
            return set()
        return {
            subject for subject, predicate, object_ in lines if predicate == RDF_TYPE and object_ not in self.classes
        }

    def _sees(self, line: list[str], hidden: set[str]) -> bool:
        subject, predicate, object_ = line
        return (
            predicate in self.predicates
            and subject not in hidden
            and object_ not in hidden
            and not object_.startswith(TRIPLE_TERM)
        )

    @cached_property
    def marks(self) -> tuple[str, ...] | None:
        """Texts of which at least one occurs in every event that has something to hide; None if any event may."""
        if self.predicates.allowed != (ALL,):
            return None
        marks = [f"\t{TRIPLE_TERM}", *_search_texts(self.predicates, "\t", "\t")]
        if self.classes.allowed != (ALL,):
            return (*marks, _TYPE)
        return (*marks, *_search_texts(self.classes, _TYPE, ""))

    def to_json(self) -> dict[str, Any]:
        """The `allowed` and `denied` patterns by kind of resource. Kinds that are all visible are left out."""
        scopes = {name: getattr(self, name) for name in RESOURCE_KINDS}
        return {
            name: {"allowed": each.allowed, "denied": each.denied} for name, each in scopes.items() if not each.is_all
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Visibility:
        return cls(
            **{name: PatternSet(tuple(each["allowed"]), tuple(each["denied"])) for name, each in document.items()}
        )


ALL_VISIBLE = Visibility()
NONE_VISIBLE = Visibility(streams=NOTHING)


def _search_texts(scope: PatternSet, before: str, after: str) -> list[str]:
    exact, starts = split_patterns(scope.denied)
    return [*(f"{before}{each}{after}" for each in sorted(exact)), *(f"{before}{each}" for each in starts)]
