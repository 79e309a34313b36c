"""Contradictions: rules that can never apply, and what a rule says in vain. A policy that has any is a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from triplewire.access.rules import Chapter, Entry, Rule, Selector
from triplewire.access.scopes import covers

Wrong: TypeAlias = Callable[[int, tuple[str, ...], str], Exception]
"""The error for a rule, by its number, and a key of it."""


def ensure_useful(chapter: Chapter, wrong: Wrong) -> None:
    """Raises what `wrong` makes of the first thing that is said in vain."""
    for number, rule in enumerate(chapter.rules):
        for each in rule.who:
            if _chosen(each, rule.but):
                raise wrong(number, ("except",), f"it leaves out all whom {str(each)!r} in `who` chooses")
        for entry in rule.entries:
            _ensure_entry(chapter, number, entry, wrong)


def _ensure_entry(chapter: Chapter, number: int, entry: Entry, wrong: Wrong) -> None:
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


def _denied_to_all(entry: Entry, rule: Rule, other: Rule) -> Entry | None:
    """What the other rule denies to everybody whom the rule allows the entry, if it takes all of that away."""
    if other is not rule and (other.but or not all(_chosen(each, other.who) for each in rule.who)):
        return None
    denied = (each for each in other.entries if (each.effect, each.kind) == ("deny", entry.kind))
    return next((each for each in denied if covers(each.pattern, entry.pattern)), None)


def _chosen(selector: Selector, by: Iterable[Selector]) -> bool:
    return any(each.covers(selector) for each in by)
