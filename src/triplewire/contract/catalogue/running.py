"""Running: how the service is doing, who repeats it, and what is erased from it."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract.operations import Operation

_ADMIN = (Verb.ADMIN,)

INDEX = Operation("index", "See where to go")
HEALTH = Operation("health", "See whether the service is well")
METRICS = Operation("metrics", "Read the metrics", _ADMIN)
EDGES = Operation("listEdges", "See the edges over the same stores", _ADMIN)
REPEATERS = Operation("listRepeaters", "See who repeats the streams", (Verb.CONSUME, Verb.ADMIN))
PUT_REPEATER = Operation("putRepeater", "Announce a repeater", _ADMIN)
REMOVE_REPEATER = Operation("removeRepeater", "Take a repeater back", _ADMIN)
ERASE_EVENT = Operation("eraseEvent", "Erase an event", _ADMIN)
ERASE_MANY = Operation("eraseEvents", "Erase all of a source, or all about a subject", _ADMIN)
ERASURES = Operation("listErasures", "See the receipts of erasures, a page at a time", _ADMIN)
FIND_ERASURE = Operation("findErasure", "See the receipt of an erasure", _ADMIN)
