"""Templates: subscriptions that differ only in constants. The text is parsed and lifted once, then filled in.

`$i0` in a text is a slot for an IRI, `$n0` for an xsd:decimal, `$t0` for an xsd:dateTime, `$s0` for a string; the
digit
is the place of its term among those that fill it in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import NO_SELECTOR, EventSelector, ShapeRequest
from triplewire.matching.shapes import Shape
from triplewire.model import Kind, Subscription
from triplewire.model.errors import TriplewireError
from triplewire.model.terms import XSD, literal, plain

SLOT = re.compile(r"\$([ints])(\d)")
_MARKS = {
    "i": "<urn:triplewire:slot:{}>",
    "n": f'"9999.{{}}1"^^<{XSD}decimal>',
    "t": f'"1999-09-0{{}}T09:09:09Z"^^<{XSD}dateTime>',
    "s": '"slot {}"',
}


_STREAM = "slot-of-the-stream"


@dataclass(frozen=True)
class Template:
    """A text with slots, asked for in one way. Where it is `streamed`, the last of its terms is no slot but the name of
    the one stream that is listened to, as a literal."""

    text: str
    kind: Kind = Kind.SIGNAL
    streamed: bool = False
    plain: bool = True
    """Whether it is patterns and filters alone, so that it may be asked of many graphs at once."""

    @cached_property
    def shape(self) -> Shape:
        return self._lifted[0]

    def fields(self, terms: Sequence[str]) -> dict[str, Any]:
        """The text as a subscriber would write it, by the name of its field."""
        return {"sparql": SLOT.sub(lambda found: terms[int(found[2])], self.text)}

    def asked(self, terms: Sequence[str]) -> ShapeRequest:
        """What is to be lifted."""
        narrowing = EventSelector(stream=(plain(terms[-1]),)) if self.streamed else NO_SELECTOR
        return ShapeRequest(self.fields(terms)["sparql"], self.kind is Kind.BINDINGS, narrowing)

    def opened(self) -> str:
        """The text with the variables `?slot0`, `?slot1`, … in its slots."""
        return SLOT.sub(r"?slot\2", self.text)

    def constants(self, terms: Sequence[str]) -> tuple[str, ...]:
        """What fills the parameters of the shape."""
        return tuple(terms[each] if isinstance(each, int) else each for each in self._lifted[1])

    @cached_property
    def _lifted(self) -> tuple[Shape, tuple[int | str, ...]]:
        """The shape, and for each of its parameters the place of its term, or the constant that it always is."""
        slots = {mark(kind, place): int(place) for kind, place in SLOT.findall(self.text)}
        text = SLOT.sub(lambda found: mark(found[1], found[2]), self.text)
        if self.streamed:
            slots[literal(_STREAM)] = -1
        narrowing = EventSelector(stream=(_STREAM,)) if self.streamed else NO_SELECTOR
        lifted = lift_request(ShapeRequest(text, self.kind is Kind.BINDINGS, narrowing))
        return lifted.shape, slotted(lifted.constants, slots, self.text)


def mark(kind: str, place: str) -> str:
    """The term that stands in a slot while its text is lifted."""
    return _MARKS[kind].format(place)


def slotted(constants: Sequence[str], slots: Mapping[str, int], text: str) -> tuple[int | str, ...]:
    """For each constant the slot that it comes from, or itself. Raises TriplewireError for a slot that is none."""
    order = tuple(slots.get(term, term) for term in constants)
    if missing := set(slots.values()) - set(order):
        raise TriplewireError(f"slots {sorted(missing)} are no constants of {text}")
    return order


@dataclass(frozen=True)
class Question:
    """A template filled in."""

    template: Template
    terms: tuple[str, ...]

    @property
    def sparql(self) -> str:
        text: str = self.template.fields(self.terms)["sparql"]
        return text

    @property
    def stream(self) -> str | None:
        return plain(self.terms[-1]) if self.template.streamed else None

    def subscription(self, id: str, since: int = 0) -> Subscription:
        template = self.template
        return Subscription(
            id=id,
            **template.fields(self.terms),
            kind=template.kind,
            shape=template.shape.key,
            constants=template.constants(self.terms),
            stream=self.stream,
            since=since,
        )
