"""Which format a client gets."""

from __future__ import annotations

from collections.abc import Sequence

from triplewire.edge.formats.clouds import CLOUD_BATCH, CLOUD_EVENTS
from triplewire.edge.formats.items import ITEMS
from triplewire.edge.formats.jellies import JELLY
from triplewire.edge.formats.lines import NDJSON
from triplewire.edge.formats.logs import MESSAGE_LOGS
from triplewire.edge.formats.ports import Format
from triplewire.edge.formats.rdf import N_QUADS, TRIG
from triplewire.edge.formats.sse import SSE
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.rdf.syntaxes import choose_offer

FORMATS: Sequence[Format] = (SSE, NDJSON, N_QUADS, TRIG, ITEMS, CLOUD_EVENTS, CLOUD_BATCH, JELLY, *MESSAGE_LOGS)
"""The first is for those who do not care."""


def format_of(accept: str | None, name: str | None = None) -> Format:
    """The format that is called so, or the one that an Accept header likes best. Raises NotAcceptable, or BadRequest
    for a name that there is not."""
    if name is not None:
        found = next((each for each in FORMATS if each.name == name), None)
        if found is None:
            raise BadRequest(f"there is no format {name!r}; there are {', '.join(each.name for each in FORMATS)}")
        return found
    liked = choose_offer(accept, [(each.media_type,) for each in FORMATS])
    if liked is None:
        raise NotAcceptable(accept or "", tuple(each.media_type for each in FORMATS))
    return FORMATS[liked]
