"""Consuming: what was published, as it comes and as it was."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract.operations import Operation

CONSUME = Operation("consume", "Listen to a stream", (Verb.CONSUME,), "stream")
GATHER = Operation("gather", "Listen to many subscriptions and streams", (Verb.SUBSCRIBE, Verb.CONSUME))
READ = Operation("readEvents", "Read a page of the log", (Verb.CONSUME,))
STREAMS = Operation("listStreams", "See the streams", (Verb.CONSUME,))
