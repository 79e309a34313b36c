"""A whole broker without processes: an edge over sockets, and what the pipeline does when it is told to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.http.harness import House, house
from triplewire.http.app import EdgeLimits, EdgeParts
from triplewire.http.delivery.backfill import BACKFILL_EVENTS
from triplewire.http.resources import access_control
from triplewire.http.resources.explain import SubscriptionExplainer
from triplewire.http.resources.ontologies import OntologyManager
from triplewire.http.resources.routes import registry_routes
from triplewire.http.resources.subscription_requests import BackfillStarts
from triplewire.http.resources.subscriptions import SubscriptionManager
from triplewire.matching.evaluator import Evaluator
from triplewire.matching.event_history import EventHistory
from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.security.principals import Authenticator
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.ports import SEGMENT_LIMITS, LogRetention, Publication, SegmentLimits
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.security import PolicyStore

CLASSES = ("Animal", "Dog", "Cat")
STREAMS = ("even", "odd")


def observed(number: int) -> Event:
    """What is seen of an animal; its number tells of which class it is."""
    quads = [
        (f"<urn:animal:{number}>", RDF_TYPE, f"<urn:{CLASSES[number % 3]}>"),
        (f"<urn:animal:{number}>", "<urn:weight>", f'"{number}"^^<{XSD}integer>'),
        (f"<urn:animal:{number}>", "<urn:name>", f'"tab\\tnumber {number} \\"é\\""@en'),
    ]
    return Event(f"urn:event:{number}", "\n".join("\t".join(quad) for quad in quads))


@dataclass
class Broker:
    """Events are numbered from 0 on, even ones in one stream, odd ones in another."""

    at: House
    lake: DeltaLake
    folder: Path
    events: dict[int, int] = field(default_factory=dict)
    """The number of the event at each position."""
    _stored: int = 0
    _commits: int = 0
    _evaluator: Evaluator = field(default_factory=Evaluator)

    def publish(self, count: int) -> None:
        """Some events, each a second after the one before."""
        for _ in range(count):
            number = len(self.events)
            self.at.twin.clock.advance(1)
            (positions,) = self.at.twin.log.append([Publication(STREAMS[number % 2], [observed(number)])])
            self.events[positions[0]] = number

    def match(self) -> None:
        """What the pipeline's first query does, up to the head."""
        log, after, head = self.at.twin.log, self._evaluator.version, self.at.twin.log.head()
        self._evaluator.apply(self.at.twin.registry.changes(after, head), head)
        matches = self._evaluator.match(log.read(after, head, 1_000))
        self.at.outbox.write(self.at.batches, head, matches)
        self.at.batches += 1

    def match_slowly(self) -> None:
        """What the query of the slow lane does: here, everything once more."""
        registry, log, head, evaluator = self.at.twin.registry, self.at.twin.log, self.at.twin.log.head(), Evaluator()
        evaluator.apply(registry.changes(0, head), head)
        self.at.outbox.write(0, head, evaluator.match(log.read(0, head, 1_000)), OutboxLane.SLOW)

    def store(self) -> None:
        """What its second query does."""
        head = self.at.twin.log.head()
        entries = self.at.twin.log.read(self._stored, head, 1_000)
        files = [FileWriter(self.folder).write(entries)] if entries.num_rows else []
        self.lake.commit(CommitBatch("store", self._commits, head), files)
        self._commits, self._stored = self._commits + 1, head

    def trim(self, seconds: float = 0.0) -> None:
        """Let go of what is older, matched and stored."""
        done = min(self.at.outbox.head(), self._stored)
        self.at.twin.log.trim(LogRetention(age=seconds - 0.5), before=done)

    def begin(self) -> int:
        """The oldest position that the log still has."""
        log = self.at.twin.log
        oldest: int = log.read(0, log.head(), 1)["position"][0].as_py()
        return oldest

    async def call(self, method: str, path: str, **options: Any) -> Any:  # noqa: ANN401
        async with self.at.session.request(method, self.at.url + path, **options) as response:
            assert response.status < 300, await response.text()
            return await response.json() if response.content_type == "application/json" else None

    async def subscribe(self, wish: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = await self.call("POST", "/subscriptions", json=dict(wish))
        return made


@asynccontextmanager
async def broker(
    folder: Path,
    *authenticators: Authenticator,
    segments: SegmentLimits = SEGMENT_LIMITS,
    backfill_events: int = BACKFILL_EVENTS,
) -> AsyncIterator[Broker]:
    lake = DeltaLake(folder)
    archive = LakeEntries(lake)

    def whole(parts: EdgeParts) -> EdgeParts:
        chronicle = EventHistory(parts.log, archive)
        subscriptions = SubscriptionManager(parts.registry, parts.clock, starts=BackfillStarts(chronicle, parts.clock))
        insights = SubscriptionExplainer(subscriptions, parts.registry, chronicle, parts.clock)
        served = [
            *registry_routes(subscriptions, OntologyManager(parts.registry), insights),
            *access_control.policy_routes(PolicyStore(parts.registry, subscriptions.visibility)),
        ]
        return replace(parts, routes=served, archive=archive, authenticators=authenticators)

    async with house(change=whole, segments=segments, limits=EdgeLimits(backfill_events=backfill_events)) as at:
        yield Broker(at, lake, folder)
