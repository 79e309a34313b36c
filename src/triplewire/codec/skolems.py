"""Skolem IRIs: what blank nodes become at the door, so that a term means the same everywhere.

A blank node is local to its document. Its IRI therefore holds a key made from the event's id and from a token
that is drawn for each body: the same label in another event, or in a second publication of the same event,
is another node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from urllib.parse import quote

PREFIX = "urn:triplewire:genid:"

_WHOLE = re.compile(r"(_:(?<![^\t\n]_:)[^\t\n]+)")
"""A blank node that is a subject or an object. Terms hold no raw tab, so that no literal can look like one.
The look behind comes second, so that the search runs for the fixed `_:`."""

_INSIDE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|<[^<> ]*>|(_:[^ \t\n]+)')
"""A blank node anywhere, also in a triple term; literals and IRIs are stepped over."""


def skolemize(text: str, event_id: str, token: str, names: Mapping[str, str]) -> str:
    """The event's text with an IRI for each blank node. `names` gives those that are graphs of the body their own."""
    if "_:" not in text:
        return text
    key = blake2b(f"{event_id} {token}".encode(), digest_size=12).hexdigest()

    def named(found: re.Match[str]) -> str:
        label = found[1]
        if label is None:
            return found[0]
        return names.get(label) or f"<{PREFIX}{key}:{quote(label[2:], safe='')}>"

    return (_INSIDE if "<<(" in text else _WHOLE).sub(named, text)
