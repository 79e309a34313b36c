"""Documents: the small file that a policy is, checked once, here. docs/policies.md says what it means."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triplewire.access.contradictions import ensure_useful
from triplewire.access.policies import Policy
from triplewire.access.rules import KINDS, Chapter, Effect, Entry, Kind, Rule, Selector
from triplewire.access.scopes import ALL, overlap
from triplewire.config import limits
from triplewire.model.errors import BodyTooLarge
from triplewire.model.terms import TW
from triplewire.places import Step, fault, unparsed

HEADERS = tuple(f"<{TW}{name}>" for name in ("stream", "source", "application", "time", "received"))
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
    if len(text.encode(errors="surrogatepass")) > limits.POLICY_BYTES:
        raise BodyTooLarge("the policy", limits.POLICY_BYTES)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise unparsed(text, error) from None
    except RecursionError:
        raise fault(text, (), "the policy is nested too deeply") from None
    return _Checked(text, document).policy()


@dataclass(frozen=True)
class _Checked:
    """Checks parts of a document; what is wrong is told with the line in the text."""

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

    def _chapter(self, name: str) -> Chapter:
        rules = self.document.get(name, [])
        if not isinstance(rules, list):
            raise self._wrong((name,), f"`{name}` must be tables [[{name}]], not {rules!r}")
        if len(rules) > limits.POLICY_RULES:
            raise self._wrong((name,), f"there are {len(rules)} tables [[{name}]], over {limits.POLICY_RULES}")
        chapter = Chapter(tuple(self._defaults(name)), tuple(self._rules(name, rules)))
        if sum(len(rule.entries) for rule in chapter.rules) > limits.POLICY_PATTERNS:
            raise self._wrong((name,), f"the rules have more than {limits.POLICY_PATTERNS} patterns")
        ensure_useful(chapter, lambda number, key, message: self._wrong((name, number, *key), message))
        return chapter

    def _defaults(self, name: str) -> Iterator[tuple[Kind, Effect]]:
        at = ("default", name)
        if name not in self.document["default"]:
            raise self._wrong(("default",), f'`{name}` is missing: say {name} = "allow" or {name} = "deny"')
        said = self.document["default"][name]
        given = said if isinstance(said, dict) else dict.fromkeys(KINDS, said)
        self._known(given, KINDS, at)
        for kind in KINDS:
            if kind not in given:
                raise self._wrong(at, f"`{kind}` is missing; all of {', '.join(KINDS)} must be said")
            if given[kind] not in _EFFECTS:
                place = (*at, kind) if isinstance(said, dict) else at
                raise self._wrong(place, f'it must be "allow" or "deny", not {given[kind]!r}')
            yield kind, given[kind]

    def _rules(self, chapter: str, rules: Sequence[object]) -> Iterator[Rule]:
        seen: set[str] = set()
        for number, each in enumerate(rules):
            rule = self._rule(self._table(each, (chapter, number)), (chapter, number))
            if rule.name in seen:
                raise self._wrong((chapter, number, "name"), "another rule has this name")
            seen.add(rule.name)
            yield rule

    def _rule(self, table: Mapping[str, Any], at: tuple[Step, ...]) -> Rule:
        self._known(table, _RULE, at)
        for key in ("name", "who"):
            if key not in table:
                raise self._wrong(at, f"`{key}` is missing")
        who = tuple(self._selectors(table["who"], (*at, "who")))
        but = tuple(self._selectors(table["except"], (*at, "except"))) if "except" in table else ()
        entries = tuple(entry for effect in _EFFECTS for entry in self._entries(table, effect, at))
        if not entries:
            raise self._wrong(at, "it allows and denies nothing; say what, as in deny.predicates = [...]")
        return Rule(self._text(table["name"], (*at, "name")), who, but, entries)

    def _selectors(self, value: object, at: tuple[Step, ...]) -> Iterator[Selector]:
        for each in self._several(value, at):
            if each == ALL:
                yield Selector("any")
            elif found := _SELECTOR.fullmatch(each):
                yield Selector("role" if found[1] == "role" else "name", found[2])
            else:
                raise self._wrong(at, f"{each!r} chooses nobody: write role:nurse, name:alice, name:desk-* or *")

    def _entries(self, table: Mapping[str, Any], effect: Effect, at: tuple[Step, ...]) -> Iterator[Entry]:
        said = self._table(table.get(effect, {}), (*at, effect))
        self._known(said, KINDS, (*at, effect))
        for kind in KINDS:
            place = (*at, effect, kind)
            for written in self._several(said[kind], place) if kind in said else ():
                pattern = self._pattern(kind, written, place)
                if kind == "predicates" and _names_header(pattern, effect):
                    raise self._wrong(place, f"{written!r} is of an event's headers, which are seen with the event")
                yield Entry(effect, kind, pattern, written)

    def _pattern(self, kind: Kind, written: str, at: tuple[Step, ...]) -> str:
        if kind == "streams":
            if not _STREAM.fullmatch(written):
                raise self._wrong(at, f"{written!r} is no pattern of streams: write home, city-* or *")
            return written
        if written == ALL:
            return ALL
        star = ALL if written.endswith(ALL) else ""
        address = self._address(written.removesuffix(ALL), at)
        return f"<{address}{star or '>'}"

    def _address(self, written: str, at: tuple[Step, ...]) -> str:
        if written.startswith("<") and written.endswith(">"):
            address = written[1:-1]
        else:
            prefix, colon, local = written.partition(":")
            known = self.document.get("prefixes", {})
            if not colon:
                raise self._wrong(at, f"{written!r} is no IRI: write <https://example.org/a>, or ex:a with a prefix")
            if prefix not in known:
                told = ", ".join(known) or "none"
                raise self._wrong(at, f"the prefix of {written!r} is not in [prefixes]; known are {told}")
            address = known[prefix] + local
        if not _IRI.fullmatch(address):
            raise self._wrong(at, f"{address!r} is no absolute IRI")
        return address

    def _several(self, value: object, at: tuple[Step, ...]) -> list[str]:
        if not isinstance(value, list) or not value:
            raise self._wrong(at, f"it must be a list of texts with something in it, not {value!r}")
        given = [self._text(each, at) for each in value]
        if twice := next((each for number, each in enumerate(given) if each in given[:number]), None):
            raise self._wrong(at, f"{twice!r} is there twice")
        return given

    def _text(self, value: object, at: tuple[Step, ...]) -> str:
        if not isinstance(value, str) or not value:
            raise self._wrong(at, f"it must be a text in quotes, not {value!r}")
        return value

    def _table(self, value: object, at: tuple[Step, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(at, f"it must be a table, not {value!r}")
        return value

    def _known(self, table: Mapping[str, Any], known: Sequence[str], at: tuple[Step, ...]) -> None:
        if unknown := next((name for name in table if name not in known), None):
            raise self._wrong((*at, unknown), f"this key is not known; known are {', '.join(known)}")

    def _wrong(self, at: tuple[Step, ...], message: str) -> Exception:
        """Names the rule and the key, and shows the line."""
        return fault(self.text, at, f"{self._told(at)}{message}")

    def _told(self, at: tuple[Step, ...]) -> str:
        if len(at) < 2 or not isinstance(at[1], int):
            return f"{'.'.join(map(str, at))}: " if at else ""
        rule = self.document[str(at[0])][at[1]]
        named = rule.get("name") if isinstance(rule, dict) else None
        key = ".".join(map(str, at[2:]))
        return f"rule {at[1] + 1} of [[{at[0]}]]{f' {named!r}' if named else ''}{', ' + key if key else ''}: "


def _names_header(pattern: str, effect: Effect) -> bool:
    """Is it one of the headers, or are they among what is denied with a namespace?"""
    if pattern in HEADERS:
        return True
    return effect == "deny" and pattern.startswith(f"<{TW}") and any(overlap(pattern, each) for each in HEADERS)
