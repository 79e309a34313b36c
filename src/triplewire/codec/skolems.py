"""Skolem IRIs: what blank nodes become at the door, so that a term means the same everywhere.

A blank node is local to its document. Its IRI therefore holds a key made from the event's id, and its number among the
blank nodes of the event: the same label in another event is another node, and the same event that comes again, with
other labels even, has the same nodes. Where the id tells a time the key begins with it, so that nodes sort as ids do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b

from triplewire.codec.ids import moment
from triplewire.model.terms import GENID

PREFIX = GENID

_WHOLE = re.compile(r"(_:(?<![^\t\n]_:)[^\t\n]+)")
"""A blank node that is a subject or an object. Terms hold no raw tab, so that no literal can look like one.
The look behind comes second, so that the search runs for the fixed `_:`."""

_INSIDE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|<[^<> ]*>|(_:[^ \t\n]+)')
"""A blank node anywhere, also in a triple term; literals and IRIs are stepped over."""


def skolemize(text: str, event_id: str, names: Mapping[str, str]) -> str:
    """The event's text with an IRI for each blank node. `names` gives those that are graphs of the body their own."""
    if "_:" not in text:
        return text
    key = moment(event_id) + blake2b(event_id.encode(), digest_size=12).hexdigest()
    numbers: dict[str, int] = {}

    def named(found: re.Match[str]) -> str:
        label = found[1]
        if label is None:
            return found[0]
        return names.get(label) or f"<{PREFIX}{key}:{numbers.setdefault(label, len(numbers))}>"

    return (_INSIDE if "<<(" in text else _WHOLE).sub(named, text)
