"""Templates of `bench match`: subscriptions that differ only in constants.

A template is a text whose constants are slots: it is parsed and lifted once, then filled in. `$i0` in a text is a
slot for an IRI, `$n0` for an xsd:decimal, `$t0` for an xsd:dateTime, `$s0` for a string; the digit is the index of its
term.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from triplewire.matching.filters import document_query
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

Objects = Mapping[str, Sequence[str]]
"""The objects of each predicate of an event, as terms."""


@dataclass(frozen=True)
class Template:
    """A text with slots. Where it is `streamed`, the last of its terms is no slot but the name of the one stream that
    is listened to, as a literal. If it is `plain`, it has patterns and filters alone and may be asked of many graphs at
    once."""

    text: str
    kind: Kind = Kind.SIGNAL
    streamed: bool = False
    plain: bool = True

    @property
    def shape(self) -> Shape:
        return self._lifted[0]

    def fields(self, terms: Sequence[str]) -> dict[str, Any]:
        """Return the text as a subscriber would write it, by the name of its field."""
        return {"sparql": SLOT.sub(lambda found: terms[int(found[2])], self.text)}

    def asked(self, terms: Sequence[str]) -> ShapeRequest:
        narrowing = EventSelector(stream=(plain(terms[-1]),)) if self.streamed else NO_SELECTOR
        return ShapeRequest(self.fields(terms)["sparql"], self.kind is Kind.BINDINGS, narrowing)

    def constants(self, terms: Sequence[str]) -> tuple[str, ...]:
        """Return the parameters of the shape."""
        return tuple(terms[each] if isinstance(each, int) else each for each in self._lifted[1])

    @cached_property
    def _lifted(self) -> tuple[Shape, tuple[int | str, ...]]:
        """The shape, and for each of its parameters the index of its term, or the constant that it always is. Raises
        TriplewireError for a slot that is no constant."""
        marks = {int(index): _MARKS[kind].format(index) for kind, index in SLOT.findall(self.text)}
        terms = [marks[index] for index in sorted(marks)] + ([literal(_STREAM)] if self.streamed else [])
        slots = {term: index for index, term in marks.items()} | ({literal(_STREAM): -1} if self.streamed else {})
        lifted = lift_request(self.asked(terms))
        order = tuple(slots.get(term, term) for term in lifted.constants)
        if missing := set(slots.values()) - set(order):
            raise TriplewireError(f"slots {sorted(missing)} are no constants of {self.text}")
        return lifted.shape, order


@dataclass(frozen=True)
class FilterTemplate(Template):
    """A filter as JSON, with plain Python as a second opinion on whether it holds. Its slots stand for terms without
    their signs: addresses and lexical forms."""

    holds: Callable[[Sequence[str], Objects], bool] = lambda _terms, _objects: False
    plain: bool = False

    def fields(self, terms: Sequence[str]) -> dict[str, Any]:
        return {"sparql": None, "filter": SLOT.sub(lambda found: plain(terms[int(found[2])]), self.text)}

    def asked(self, terms: Sequence[str]) -> ShapeRequest:
        return ShapeRequest(
            None, self.kind is Kind.BINDINGS, query=document_query(orjson.loads(self.fields(terms)["filter"]))
        )


@dataclass(frozen=True)
class FilledTemplate:
    """A template, and the terms for its slots."""

    template: Template
    terms: tuple[str, ...]

    @property
    def sparql(self) -> str:
        text: str = self.template.fields(self.terms)["sparql"]
        return text

    @property
    def stream(self) -> str | None:
        return plain(self.terms[-1]) if self.template.streamed else None

    def make_subscription(self, id: str, since: int = 0) -> Subscription:
        template = self.template
        shape, constants = template.shape.key, template.constants(self.terms)
        fields = template.fields(self.terms)
        return Subscription(
            id=id, **fields, kind=template.kind, shape=shape, constants=constants, stream=self.stream, since=since
        )
