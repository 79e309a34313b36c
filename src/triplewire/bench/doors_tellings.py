"""Tellings of `bench doors`: events as they go out to webhooks, to subscribers of WebSub, to clients of Mercure, and
on
pages of histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import pyarrow as pa

from triplewire.http.dialects.ldes import LdesAddresses, write_members
from triplewire.http.dialects.mercure import MERCURE
from triplewire.http.formats.messages import EntryPieces, MessageFormat
from triplewire.http.webhooks.deliverer import WEBHOOK_FORMATS, WEBHOOK_JSON
from triplewire.model import format_position
from triplewire.rdf.serializer import write_document
from triplewire.rdf.syntaxes import TRIG
from triplewire.security.webhooks import hub_signature, new_secret, signature_headers
from triplewire.storage.log import ports

_SECRET = new_secret()


def written(format: MessageFormat, table: pa.Table) -> list[bytes]:
    """Each event of a table as a message."""
    pieces = EntryPieces(table)
    return [format.event(pieces, position) for position in table["position"].to_pylist()]


def _webhooks(table: pa.Table) -> list[bytes]:
    """With what their signatures take, which are part of each call."""
    found = written(WEBHOOK_JSON, table)
    for number, body in enumerate(found):
        signature_headers(_SECRET, format_position(number), 0, body)
    return found


def _websub(table: pa.Table) -> list[bytes]:
    found = written(WEBHOOK_FORMATS["nquads"], table)
    for body in found:
        hub_signature(_SECRET, body)
    return found


def _pages(table: pa.Table) -> list[bytes]:
    """As many events on each as a full one has."""
    entries: Iterator[Mapping[str, object]] = iter(table.to_pylist())
    at, found = LdesAddresses("http://localhost:8080", "bench"), list[bytes]()
    while page := list(islice(entries, ports.LEAF_EVENTS)):
        found.append(write_document("".join(write_members(at, page)), TRIG))
    return found


TELLINGS: Mapping[str, Callable[[pa.Table], list[bytes]]] = {
    "webhook": _webhooks,
    "websub": _websub,
    "mercure": lambda table: written(MERCURE, table),
    "ldes": _pages,
}
