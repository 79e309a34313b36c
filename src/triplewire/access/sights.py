"""Sights: what somebody sees. A sight is a pure function of one event, whoever applies it.

```
event ── its stream or its graph out of sight? ── yes ──▶ it is not there
           │ no
           ▼ each of its quads:
             its predicate out of sight?                              ┐
             its subject an instance, in this event, of a class       │
               that is out of sight, or its object such an instance?  ├── yes ──▶ it is not there
             its object a triple term, where predicates or classes    │
               are out of sight?                                      ┘
           │ none left? ── yes ──▶ the event is not there
           ▼
         what is left, in its order
```

A triple term says in one object what quads say, so nobody sees any who may not see all predicates and classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from triplewire.access.rules import KINDS
from triplewire.access.scopes import ALL, EVERYTHING, NOTHING, Scope, parted
from triplewire.model.terms import RDF_TYPE

TRIPLE_TERM = "<<"
_TYPE = f"\t{RDF_TYPE}\t"
_REMEMBERED = 4_096
"""Predicates of which a sight remembers whether they are in it: some 1 MB."""


@dataclass(frozen=True)
class Sight:
    """What is in sight: streams by name; graphs, classes and predicates as terms. Those who have equal ones can share
    whatever was made for them."""

    streams: Scope = EVERYTHING
    graphs: Scope = EVERYTHING
    classes: Scope = EVERYTHING
    predicates: Scope = EVERYTHING

    @property
    def is_whole(self) -> bool:
        """Is everything in sight?"""
        return self.streams.is_all and self.leaves_streams

    @property
    def is_blind(self) -> bool:
        """Is nothing ever in sight?"""
        return self.streams.is_empty or self.graphs.is_empty or self.predicates.is_empty

    @cached_property
    def leaves_events(self) -> bool:
        """Is an event in sight always so whole?"""
        return self.classes.is_all and self.predicates.is_all

    @property
    def leaves_streams(self) -> bool:
        """Is a stream in sight always so whole? Then its counts tell of nothing that is hidden."""
        return self.graphs.is_all and self.leaves_events

    def within(self, streams: Scope) -> Sight:
        """What of it lies in these streams. All that see nothing are one."""
        made = replace(self, streams=self.streams.met(streams))
        return BLIND if made.is_blind else made

    def sees_event(self, stream: str, graph: str) -> bool:
        """Are stream and graph in sight? `graph` is the event's id. Of the quads nothing is said."""
        return stream in self.streams and f"<{graph}>" in self.graphs

    def visible(self, text: str) -> str | None:
        """What of an event's text is in sight, where its stream and graph are; None for nothing."""
        if self.leaves_events or not self._concerns(text):
            return text
        lines = text.split("\n")
        left = self._by_predicate(lines) if self.classes.is_all else self._by_all(lines)
        return text if len(left) == len(lines) else "\n".join(left) or None

    def _by_predicate(self, lines: list[str]) -> list[str]:
        """Those that are in sight where no class counts. There are few predicates, so it is remembered of each."""
        known = self._known
        if len(known) > _REMEMBERED:
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
        """What of an event is in sight, as its text; None where it is not there."""
        return self.visible(text) if self.sees_event(stream, graph) else None

    def _hidden(self, lines: list[list[str]]) -> set[str]:
        """The instances of classes that are out of sight."""
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

    def _concerns(self, text: str) -> bool:
        """May something of the text be out of sight? A look for what is denied is far quicker than to take it apart."""
        return self.marks is None or any(mark in text for mark in self.marks)

    @cached_property
    def marks(self) -> tuple[str, ...] | None:
        """What stands in every text of which something is out of sight; None where all may be of such."""
        if self.predicates.allowed != (ALL,):
            return None
        marks = [f"\t{TRIPLE_TERM}", *_marked(self.predicates, "\t", "\t")]
        if self.classes.allowed != (ALL,):
            return (*marks, _TYPE)
        return (*marks, *_marked(self.classes, _TYPE, ""))

    def to_json(self) -> dict[str, Any]:
        """By the kind of what is seen, `allowed` and `denied` patterns. What is all in sight is left out."""
        told = {name: getattr(self, name) for name in KINDS}
        return {
            name: {"allowed": each.allowed, "denied": each.denied} for name, each in told.items() if not each.is_all
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Sight:
        """What `to_json` made."""
        return cls(**{name: Scope(tuple(each["allowed"]), tuple(each["denied"])) for name, each in document.items()})


WHOLE = Sight()
BLIND = Sight(streams=NOTHING)


def _marked(scope: Scope, before: str, after: str) -> list[str]:
    exact, starts = parted(scope.denied)
    return [*(f"{before}{each}{after}" for each in sorted(exact)), *(f"{before}{each}" for each in starts)]
