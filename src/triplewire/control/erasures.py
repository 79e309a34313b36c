"""Erasures: asking for them, and their receipts. Pure over the registry port; it blocks, so call it from a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from uuid import uuid4

from triplewire.config import limits
from triplewire.model import ErasureScope
from triplewire.model.clock import Clock
from triplewire.model.errors import BadRequest, NotFound
from triplewire.rdf import check_id
from triplewire.storage.registry.erasure import ERASURE, ErasureReceipt, receipt_from_change, request_entries
from triplewire.storage.registry.ports import Registry

BY = "by"
_FORBIDDEN = "\"'\\"


@dataclass(frozen=True)
class Wanted:
    """What is to be erased, and who says so."""

    scope: ErasureScope
    name: str
    by: str | None = None

    @classmethod
    def of_event(cls, id: str, query: Mapping[str, str]) -> Wanted:
        """From an address and its parameters. Raises BadRequest."""
        _check(query, {BY})
        return cls(ErasureScope.EVENT, check_id(id), _text(BY, query.get(BY)))

    @classmethod
    def of_many(cls, query: Mapping[str, str]) -> Wanted:
        """From parameters. Raises BadRequest unless they name a source or a subject, one of them."""
        _check(query, {ErasureScope.SOURCE, ErasureScope.SUBJECT, BY})
        source, subject = _text(ErasureScope.SOURCE, query.get(ErasureScope.SOURCE)), query.get(ErasureScope.SUBJECT)
        by = _text(BY, query.get(BY))
        if (source is None) == (subject is None):
            raise BadRequest(
                "give ?source= or ?subject=, one of them; DELETE /events/{id} erases one event, "
                "and there is no way to erase all at once"
            )
        return (
            cls(ErasureScope.SOURCE, source, by)
            if source is not None
            else cls(ErasureScope.SUBJECT, _iri(subject or ""), by)
        )


@dataclass(frozen=True)
class Page:
    """Some receipts, and the position after which the next of them are; None at the end."""

    receipts: Sequence[ErasureReceipt]
    next: int | None


class Erasures:
    """What was asked to be forgotten, as the registry holds it."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock

    def ask(self, wanted: Wanted) -> ErasureReceipt:
        """The receipt, once the erasure is durable. From then on nobody is shown what it names."""
        now = self._clock.now()
        digest = sha256(wanted.name.encode()).hexdigest()
        receipt = ErasureReceipt(uuid4().hex, wanted.scope, digest, now, wanted.by).done("hidden", now)
        position, _ = self._registry.put(request_entries(receipt, wanted.name))
        return replace(receipt, position=position)

    def find(self, id: str) -> ErasureReceipt:
        """Raises NotFound for one that is not there."""
        change = self._registry.get(ERASURE, id)
        if change is None:
            raise NotFound(f"there is no receipt {id}")
        return receipt_from_change(change)

    def page(self, after: int, limit: int) -> Page:
        """Those that changed after a position, in the order of their last change."""
        found = self._registry.list(ERASURE, after=after, limit=limit)
        return Page([receipt_from_change(each) for each in found], found[-1].position if len(found) == limit else None)


def _check(query: Mapping[str, str], known: set[str]) -> None:
    for name in query:
        if name not in known:
            raise BadRequest(f"the parameter {name} is not known here; {', '.join(sorted(known))} are")


def _text(name: str, text: str | None) -> str | None:
    """A parameter as the door would have taken it when an event was published."""
    if text is None:
        return None
    if len(text) > limits.HEADER_CHARACTERS:
        raise BadRequest(f"{name} has {len(text)} characters; at most {limits.HEADER_CHARACTERS} are taken")
    if not text or not text.isprintable() or any(character in _FORBIDDEN for character in text):
        raise BadRequest(f"{name} must be printable text without quotes and backslashes, not {text!r}")
    return text


def _iri(text: str) -> str:
    try:
        return check_id(text)
    except BadRequest:
        raise BadRequest(f"subject must be an absolute IRI, without angle brackets, not {text[:60]!r}") from None
