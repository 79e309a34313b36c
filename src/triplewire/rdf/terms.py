"""Event ids, Skolem IRIs and checked terms.

An event id is an absolute IRI that names the graph of the event's quads. New ids are in the order of time (UUID
version 7, RFC 9562), so that files which hold a stretch of time hold a stretch of ids, and a look-up by id skips the
others.

Skolemization replaces blank nodes by IRIs at publication. A blank node is local to its document: its IRI holds a key
made from the event's id and its number among the blank nodes of the event. The same label in another event is another
node; the same event published again, even with other labels, has the same nodes. Where the id tells a time the key
begins with it, so that nodes sort as ids do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from secrets import randbits
from threading import Lock
from typing import Final
from uuid import UUID

import pyoxigraph as ox

from triplewire.model.clock import Clock, SystemClock
from triplewire.model.errors import BadRequest
from triplewire.model.terms import GENID

HEADER_CHARACTERS: Final = 1024
"""An event's id, source or application. They are repeated in every stored quad."""


_VERSION, _VARIANT = 0x7 << 76, 0b10 << 62
_FRACTIONS = 1 << 12
"""Parts of a millisecond in an id."""
_TIMED = re.compile(r"urn:uuid:([0-9a-f]{8})-([0-9a-f]{4})-7")


class IdGenerator:
    """Generates unique ids, each greater than the one before, also if the clock stands still or is set back.
    Thread-safe."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last = 0
        self._lock = Lock()

    def new(self) -> str:
        millisecond, rest = divmod(self._clock.now(), 1_000)
        with self._lock:
            self._last = max(self._last + 1, millisecond * _FRACTIONS + rest * _FRACTIONS // 1_000)
            milliseconds, fraction = divmod(self._last, _FRACTIONS)
        return f"urn:uuid:{UUID(int=milliseconds << 80 | _VERSION | fraction << 64 | _VARIANT | randbits(62))}"


new_id = IdGenerator().new
"""The id generator of this process."""


def id_milliseconds(text: str) -> str:
    """Return the millisecond of a generated id, as twelve digits that sort by time; empty for other ids."""
    found = _TIMED.match(text)
    return found[1] + found[2] if found else ""


def check_id(text: str) -> str:
    """Return the id if it is an absolute IRI of bounded length. Raises BadRequest."""
    if len(text) > HEADER_CHARACTERS:
        raise BadRequest(f"the event id {text[:60]}… is longer than the limit of {HEADER_CHARACTERS} characters")
    try:
        return ox.NamedNode(text).value
    except ValueError as error:
        raise BadRequest(
            f"{text!r} is not an event id ({error}); use an absolute IRI such as urn:uuid:… or https://example.org/event/1"
        ) from None


SKOLEM_PREFIX = GENID

_WHOLE = re.compile(r"(_:(?<![^\t\n]_:)[^\t\n]+)")
"""A blank node that is a subject or an object. Terms hold no raw tab, so that no literal can look like one.
The look behind comes second, so that the search runs for the fixed `_:`."""

_INSIDE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|<[^<> ]*>|(_:[^ \t\n]+)')
"""A blank node anywhere, also in a triple term; literals and IRIs are skipped."""


def skolemize(text: str, event_id: str, names: Mapping[str, str]) -> str:
    """Replace each blank node of an event's text by an IRI. `names` has the IRIs of those that name graphs."""
    if "_:" not in text:
        return text
    key = id_milliseconds(event_id) + blake2b(event_id.encode(), digest_size=12).hexdigest()
    numbers: dict[str, int] = {}

    def named(found: re.Match[str]) -> str:
        label = found[1]
        if label is None:
            return found[0]
        return names.get(label) or f"<{SKOLEM_PREFIX}{key}:{numbers.setdefault(label, len(numbers))}>"

    return (_INSIDE if "<<(" in text else _WHOLE).sub(named, text)


def make_iri(address: str) -> str:
    """Return the term of an absolute IRI, checked by the parser's library. Raises ValueError."""
    return str(ox.NamedNode(address))


def make_literal(lexical: str, datatype: str | None = None, language: str | None = None) -> str:
    """Return the term of a plain, typed or tagged literal. Raises ValueError for a malformed IRI or language tag."""
    if datatype is not None:
        return str(ox.Literal(lexical, datatype=ox.NamedNode(datatype)))
    return str(ox.Literal(lexical, language=language))
