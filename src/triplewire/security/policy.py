"""The access policy: parsed from TOML, checked once, and applied to a principal.

A policy gives a principal its visibility and its publish permit. A policy with a rule that can never apply, or that
changes nothing, is refused with the rule, the key and the line. docs/policies.md describes the format.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from triplewire.config.toml_errors import KeyStep, error_at_key, toml_syntax_error
from triplewire.model.errors import BodyTooLarge
from triplewire.model.terms import RDF_TYPE, TW
from triplewire.security.principals import Principal, Verb
from triplewire.security.visibility import (
    ALL,
    ALL_VISIBLE,
    RESOURCE_KINDS,
    Effect,
    PatternSet,
    PolicyRule,
    ResourceKind,
    RuleEntry,
    RuleSet,
    Selector,
    Visibility,
    covers,
    overlaps,
)

POLICY_BYTES: Final = 256 * 1024
"""A policy as it is sent. It is read by every edge, and every version of it stays in the registry."""

POLICY_RULES: Final = 256
"""Rules about seeing, and as many about publishing. All are looked at for each pair of name and roles that asks."""

POLICY_PATTERNS: Final = 4_096
"""Patterns that allow and deny, in all. Each is a part of a condition in every query that it concerns."""


_REMEMBERED_PRINCIPALS = 4_096
"""Principals whose visibility and permit are cached; each is computed in some 50 µs."""


@dataclass(frozen=True, eq=False)
class Policy:
    """One document of rules. Two are the same only if they are one."""

    see: RuleSet
    publish: RuleSet


@dataclass(frozen=True)
class PublishPermit:
    """The events that a principal may publish. Events are refused whole."""

    scope: Visibility
    chapter: RuleSet

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

    def _refused(self, kind: ResourceKind, name: str, what: str) -> str:
        return f"{what} must not be published: {self.chapter.reason(kind, name)}"


def visibility_of(principal: Principal, verb: Verb, policy: Policy | None) -> Visibility | None:
    """The visibility of a principal for a verb (consume, subscribe or query): events of the streams on which it is
    granted, and of these the part that the policy shows. None: everything."""
    seen = _cached_visibility(policy, principal.name, principal.roles, principal.patterns(verb))
    return None if seen.is_whole else seen


def publish_permit_of(principal: Principal, policy: Policy | None) -> PublishPermit | None:
    """The events that a principal may publish by the policy, whatever is granted to it. None: everything."""
    return None if policy is None else _cached_permit(policy, principal.name, principal.roles)


@lru_cache(maxsize=_REMEMBERED_PRINCIPALS)
def _cached_visibility(policy: Policy | None, name: str, roles: frozenset[str], patterns: frozenset[str]) -> Visibility:
    seen = ALL_VISIBLE if policy is None else _visibility_by_rules(policy.see.for_(name, roles))
    return seen.within(PatternSet.of(patterns))


@lru_cache(maxsize=_REMEMBERED_PRINCIPALS)
def _cached_permit(policy: Policy, name: str, roles: frozenset[str]) -> PublishPermit | None:
    chapter = policy.publish.for_(name, roles)
    scope = _visibility_by_rules(chapter)
    return None if scope.is_whole else PublishPermit(scope, chapter)


def _visibility_by_rules(chapter: RuleSet) -> Visibility:
    return Visibility(**{kind: chapter.scope(kind) for kind in RESOURCE_KINDS})


MakeRuleError: TypeAlias = Callable[[int, tuple[str, ...], str], Exception]
"""The error for a rule, by its number, and a key of it."""


def check_rules_apply(chapter: RuleSet, wrong: MakeRuleError) -> None:
    """Raises what `wrong` makes of the first thing that is said in vain."""
    for number, rule in enumerate(chapter.rules):
        for each in rule.who:
            if _is_selected(each, rule.but):
                raise wrong(number, ("except",), f"it leaves out all whom {str(each)!r} in `who` chooses")
        for entry in rule.entries:
            _check_entry(chapter, number, entry, wrong)


def _check_entry(chapter: RuleSet, number: int, entry: RuleEntry, wrong: MakeRuleError) -> None:
    rule, key = chapter.rules[number], (entry.effect, entry.kind)
    default = chapter.default(entry.kind)
    if entry.effect == "allow" and default == "allow":
        raise wrong(number, key, f"{entry.written!r} changes nothing: {entry.kind} are allowed by default")
    if entry.effect == "allow":
        for other in chapter.rules:
            if denied := _denied_to_all(entry, rule, other):
                where = "this rule" if other is rule else f"the rule {other.name!r}"
                message = f"{entry.written!r} is never allowed: {where} denies {denied.written!r} to the same"
                raise wrong(number, key, message)
    for each in rule.entries:
        if each is not entry and (each.effect, each.kind) == key and covers(each.pattern, entry.pattern):
            raise wrong(number, key, f"{entry.written!r} says nothing beside {each.written!r}")


def _denied_to_all(entry: RuleEntry, rule: PolicyRule, other: PolicyRule) -> RuleEntry | None:
    """The principals to which the other rule denies the entry, if these are all that this rule allows it to."""
    if other is not rule and (other.but or not all(_is_selected(each, other.who) for each in rule.who)):
        return None
    denied = (each for each in other.entries if (each.effect, each.kind) == ("deny", entry.kind))
    return next((each for each in denied if covers(each.pattern, entry.pattern)), None)


def _is_selected(selector: Selector, by: Iterable[Selector]) -> bool:
    return any(each.covers(selector) for each in by)


HEADER_PREDICATES = tuple(f"<{TW}{name}>" for name in ("stream", "source", "application", "time", "received"))
"""Predicates whose triples are made of an event's headers, which are seen with it."""

_EFFECTS: tuple[Effect, ...] = ("allow", "deny")
_TOP = ("default", "prefixes", "see", "publish")
_RULE = ("name", "who", "except", *_EFFECTS)
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^<>\"{}|^`\\\x00-\x20]*")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*\*?|\*")
_SELECTOR = re.compile(r"(role|name):([^*]+\*?|\*)")


def parse_policy(text: str) -> Policy:
    """The policy that a text is. Raises BadRequest, with the rule, the key and the line; or BodyTooLarge."""
    if len(text.encode(errors="surrogatepass")) > POLICY_BYTES:
        raise BodyTooLarge("the policy", POLICY_BYTES)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise toml_syntax_error(text, error) from None
    except RecursionError:
        raise error_at_key(text, (), "the policy is nested too deeply") from None
    return _PolicyParser(text, document).policy()


@dataclass(frozen=True)
class _PolicyParser:
    """Checks parts of a document; an error names the line in the text."""

    text: str
    document: Mapping[str, Any]

    def policy(self) -> Policy:
        self._known(self.document, _TOP, ())
        if "default" not in self.document:
            raise self._wrong((), 'there must be a table [default] that says see = "allow" or "deny", and publish')
        self._known(self._table(self.document["default"], ("default",)), ("see", "publish"), ("default",))
        self._prefixes()
        see, publish = (self._chapter(name) for name in ("see", "publish"))
        return Policy(see, publish)

    def _prefixes(self) -> None:
        for name, value in self._table(self.document.get("prefixes", {}), ("prefixes",)).items():
            at = ("prefixes", name)
            if not _PREFIX.fullmatch(name):
                raise self._wrong(at, f"{name!r} is no prefix: letters, digits, _ and - are, a letter first")
            if not _IRI.fullmatch(self._text(value, at)):
                raise self._wrong(at, f"{value!r} is no absolute IRI; one is https://example.org/ns#")

    def _chapter(self, name: str) -> RuleSet:
        rules = self.document.get(name, [])
        if not isinstance(rules, list):
            raise self._wrong((name,), f"`{name}` must be tables [[{name}]], not {rules!r}")
        if len(rules) > POLICY_RULES:
            raise self._wrong((name,), f"there are {len(rules)} tables [[{name}]], over {POLICY_RULES}")
        chapter = RuleSet(tuple(self._defaults(name)), tuple(self._rules(name, rules)))
        if sum(len(rule.entries) for rule in chapter.rules) > POLICY_PATTERNS:
            raise self._wrong((name,), f"the rules have more than {POLICY_PATTERNS} patterns")
        check_rules_apply(chapter, lambda number, key, message: self._wrong((name, number, *key), message))
        return chapter

    def _defaults(self, name: str) -> Iterator[tuple[ResourceKind, Effect]]:
        at = ("default", name)
        if name not in self.document["default"]:
            raise self._wrong(("default",), f'`{name}` is missing: say {name} = "allow" or {name} = "deny"')
        said = self.document["default"][name]
        given = said if isinstance(said, dict) else dict.fromkeys(RESOURCE_KINDS, said)
        self._known(given, RESOURCE_KINDS, at)
        for kind in RESOURCE_KINDS:
            if kind not in given:
                raise self._wrong(at, f"`{kind}` is missing; all of {', '.join(RESOURCE_KINDS)} must be said")
            if given[kind] not in _EFFECTS:
                here = (*at, kind) if isinstance(said, dict) else at
                raise self._wrong(here, f'it must be "allow" or "deny", not {given[kind]!r}')
            yield kind, given[kind]

    def _rules(self, chapter: str, rules: Sequence[object]) -> Iterator[PolicyRule]:
        seen: set[str] = set()
        for number, each in enumerate(rules):
            rule = self._rule(self._table(each, (chapter, number)), (chapter, number))
            if rule.name in seen:
                raise self._wrong((chapter, number, "name"), "another rule has this name")
            seen.add(rule.name)
            yield rule

    def _rule(self, table: Mapping[str, Any], at: tuple[KeyStep, ...]) -> PolicyRule:
        self._known(table, _RULE, at)
        for key in ("name", "who"):
            if key not in table:
                raise self._wrong(at, f"`{key}` is missing")
        who = tuple(self._selectors(table["who"], (*at, "who")))
        but = tuple(self._selectors(table["except"], (*at, "except"))) if "except" in table else ()
        entries = tuple(entry for effect in _EFFECTS for entry in self._entries(table, effect, at))
        if not entries:
            raise self._wrong(at, "it allows and denies nothing; say what, as in deny.predicates = [...]")
        return PolicyRule(self._text(table["name"], (*at, "name")), who, but, entries)

    def _selectors(self, value: object, at: tuple[KeyStep, ...]) -> Iterator[Selector]:
        for each in self._several(value, at):
            if each == ALL:
                yield Selector("any")
            elif found := _SELECTOR.fullmatch(each):
                yield Selector("role" if found[1] == "role" else "name", found[2])
            else:
                raise self._wrong(at, f"{each!r} chooses nobody: write role:nurse, name:alice, name:desk-* or *")

    def _entries(self, table: Mapping[str, Any], effect: Effect, at: tuple[KeyStep, ...]) -> Iterator[RuleEntry]:
        said = self._table(table.get(effect, {}), (*at, effect))
        self._known(said, RESOURCE_KINDS, (*at, effect))
        for kind in RESOURCE_KINDS:
            here = (*at, effect, kind)
            for written in self._several(said[kind], here) if kind in said else ():
                pattern = self._pattern(kind, written, here)
                if kind == "predicates" and _names_header(pattern, effect):
                    raise self._wrong(here, f"{written!r} is of an event's headers, which are seen with the event")
                yield RuleEntry(effect, kind, pattern, written)

    def _pattern(self, kind: ResourceKind, written: str, at: tuple[KeyStep, ...]) -> str:
        if kind == "streams":
            if not _STREAM.fullmatch(written):
                raise self._wrong(at, f"{written!r} is no pattern of streams: write home, city-* or *")
            return written
        if written == ALL:
            return ALL
        star = ALL if written.endswith(ALL) else ""
        address = self._address(written.removesuffix(ALL), at)
        return f"<{address}{star or '>'}"

    def _address(self, written: str, at: tuple[KeyStep, ...]) -> str:
        if written.startswith("<") and written.endswith(">"):
            address = written[1:-1]
        else:
            prefix, colon, local = written.partition(":")
            known = self.document.get("prefixes", {})
            if not colon:
                raise self._wrong(at, f"{written!r} is no IRI: write <https://example.org/a>, or ex:a with a prefix")
            if prefix not in known:
                names = ", ".join(known) or "none"
                raise self._wrong(at, f"the prefix of {written!r} is not in [prefixes]; known are {names}")
            address = known[prefix] + local
        if not _IRI.fullmatch(address):
            raise self._wrong(at, f"{address!r} is no absolute IRI")
        return address

    def _several(self, value: object, at: tuple[KeyStep, ...]) -> list[str]:
        if not isinstance(value, list) or not value:
            raise self._wrong(at, f"it must be a list of texts with something in it, not {value!r}")
        given = [self._text(each, at) for each in value]
        if twice := next((each for number, each in enumerate(given) if each in given[:number]), None):
            raise self._wrong(at, f"{twice!r} is there twice")
        return given

    def _text(self, value: object, at: tuple[KeyStep, ...]) -> str:
        if not isinstance(value, str) or not value:
            raise self._wrong(at, f"it must be a text in quotes, not {value!r}")
        return value

    def _table(self, value: object, at: tuple[KeyStep, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(at, f"it must be a table, not {value!r}")
        return value

    def _known(self, table: Mapping[str, Any], known: Sequence[str], at: tuple[KeyStep, ...]) -> None:
        if unknown := next((name for name in table if name not in known), None):
            raise self._wrong((*at, unknown), f"this key is not known; known are {', '.join(known)}")

    def _wrong(self, at: tuple[KeyStep, ...], message: str) -> Exception:
        """Names the rule and the key, and shows the line."""
        return error_at_key(self.text, at, f"{self._label(at)}{message}")

    def _label(self, at: tuple[KeyStep, ...]) -> str:
        if len(at) < 2 or not isinstance(at[1], int):
            return f"{'.'.join(map(str, at))}: " if at else ""
        rule = self.document[str(at[0])][at[1]]
        named = rule.get("name") if isinstance(rule, dict) else None
        key = ".".join(map(str, at[2:]))
        return f"rule {at[1] + 1} of [[{at[0]}]]{f' {named!r}' if named else ''}{', ' + key if key else ''}: "


def _names_header(pattern: str, effect: Effect) -> bool:
    """Is it one of the headers, or are they among what is denied with a namespace?"""
    if pattern in HEADER_PREDICATES:
        return True
    return (
        effect == "deny" and pattern.startswith(f"<{TW}") and any(overlaps(pattern, each) for each in HEADER_PREDICATES)
    )
