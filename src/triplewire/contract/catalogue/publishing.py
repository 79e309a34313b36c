"""Publishing: events in."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract.operations import Operation

PUBLISH = Operation("publish", "Publish events to a stream", (Verb.PUBLISH,), "stream")
PUBLISH_BY_SOCKET = Operation(
    "publishBySocket", "Keep publishing to a stream over a WebSocket", (Verb.PUBLISH,), "stream"
)
PUBLISH_ADDRESSED = Operation("publishAddressed", "Publish events that say their streams themselves", (Verb.PUBLISH,))
