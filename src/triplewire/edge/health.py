"""`/health` and `/metrics`: how things stand, without embellishment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import pstdev
from typing import Any

import orjson
from aiohttp import web

from triplewire.access import Verb
from triplewire.config import limits
from triplewire.config.metrics import CONTENT_TYPE, Metrics, merge_expositions
from triplewire.config.status import Heartbeat
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import running
from triplewire.edge.company.standings import Standings
from triplewire.edge.ports import Entries
from triplewire.edge.workers import Workers
from triplewire.model import LimitReached, format_position
from triplewire.model.clock import Clock
from triplewire.storage.log.ports import Outbox


@dataclass(frozen=True)
class Behind:
    """How far a lane is: up to where it has matched, how many positions wait, and the age of the oldest event of them,
    in seconds."""

    matched: int
    lag: int
    age: float


@dataclass(frozen=True)
class Reading:
    """What was read at one moment. `age` is that of the oldest event not yet matched, in seconds."""

    head: int
    matched: int
    stored: int | None
    waiting: bool
    age: float
    pipeline: str
    limits: Mapping[str, int] = field(default_factory=dict)
    """How often subscriptions reached each limit."""
    lanes: Mapping[str, Behind] = field(default_factory=dict)
    """Those beside the main one."""
    lake: Mapping[str, Any] = field(default_factory=dict)
    """What the housekeeper last told."""
    queries: Mapping[str, float] = field(default_factory=dict)
    """What was last told of continuous queries."""

    @property
    def lag(self) -> int:
        return self.head - self.matched if self.waiting else 0

    @property
    def status(self) -> str:
        if self.pipeline == "starting":
            return "starting"
        if self.pipeline != "ready":
            return "down"
        return "lagging" if self.age > limits.LAGGING_SECONDS else "ok"


@dataclass(frozen=True)
class Sources:
    """Where health is read from. `stored` gives the position up to which the lake holds everything."""

    log: Entries
    outbox: Outbox
    heartbeat: Callable[[], Heartbeat]
    stored: Callable[[], int] | None
    clock: Clock
    slow: Outbox
    ongoing: Outbox

    def read(self) -> Reading:
        matched, slow, head = self.outbox.head(), self.slow.head(), self.log.head()
        age = self._age(matched, head)
        stored = self.stored() if self.stored else None
        beat = self.heartbeat()
        ongoing = beat.detail.get("ongoing", {})
        lanes = {"slow": self._behind(slow, head)} if slow else {}
        lanes |= {"ongoing": self._behind(self.ongoing.head(), head)} if ongoing else {}
        lake = beat.detail.get("lake", {})
        reached = {of.value: int(beat.detail.get("limits", {}).get(of, 0)) for of in LimitReached}
        pipeline, told = self._pipeline(beat), _queries(ongoing)
        return Reading(head, matched, stored, age is not None, age or 0.0, pipeline, reached, lanes, lake, told)

    def _behind(self, matched: int, head: int) -> Behind:
        age = self._age(matched, head)
        return Behind(matched, 0 if age is None else head - matched, age or 0.0)

    def _age(self, matched: int, head: int) -> float | None:
        """Of the oldest event not yet matched; None if there is none."""
        oldest = self.log.read(matched, head, 1)
        if not oldest.num_rows:
            return None
        received: int = oldest.column("received")[0].as_py()
        return max(0.0, (self.clock.now() - received) / 1_000_000)

    def _pipeline(self, beat: Heartbeat) -> str:
        lively = beat.state not in ("starting", "ready") or beat.alive(self.clock)
        return beat.state if lively else "stale"


class Health:
    """Answers those who ask how it goes."""

    def __init__(
        self,
        sources: Sources,
        workers: Workers,
        metrics: Metrics,
        listeners: Callable[[], dict[str, int]],
        who: Callable[[], dict[str, Any]],
        standings: Standings,
    ) -> None:
        self._sources = sources
        self._workers = workers
        self._metrics = metrics
        self._listeners = listeners
        self._who = who
        self._standings = standings

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/health", self.health), web.get("/metrics", self.metrics)]

    @serves(running.HEALTH)
    async def health(self, request: web.Request) -> web.Response:
        """200 while what is published gets matched, be it late; 503 otherwise. Publishing works in both cases. How much
        there is, and who listens, is not for everyone."""
        reading = await self._workers.run(self._sources.read)
        status = 200 if reading.status in ("ok", "lagging") else 503
        document = {**self._who(), **_document(reading)}
        if caller(request).may(Verb.ADMIN):
            document |= _inside(reading, self._listeners())
        body = orjson.dumps(document)
        return web.Response(status=status, body=body, content_type="application/json")

    @serves(running.METRICS)
    async def metrics(self, request: web.Request) -> web.Response:
        reading = await self._workers.run(self._sources.read)
        self._metrics.head.set(reading.head)
        self._metrics.matched.set(reading.matched)
        self._metrics.lag.set(reading.lag)
        self._metrics.lag_seconds.set(reading.age)
        for name, behind in reading.lanes.items():
            self._metrics.lane_lag.labels(name).set(behind.lag)
            self._metrics.lane_lag_seconds.labels(name).set(behind.age)
        for of, count in reading.limits.items():
            self._metrics.limits.labels(of).set(count)
        for of, gauge in self._metrics.lake.items():
            gauge.set(reading.lake.get(of, 0))
        for of, gauge in self._metrics.queries.items():
            gauge.set(reading.queries.get(of, 0))
        return web.Response(body=await self._exposition(), headers={"Content-Type": CONTENT_TYPE})

    async def _exposition(self) -> bytes:
        """Of all edges over the directory, whichever was asked; of an edge that is alone in memory, its own."""
        name = self._standings.own().name
        own = self._metrics.exposition()
        if self._standings.place.folder is None:
            return own
        others = await self._workers.run(self._standings.others)
        return merge_expositions(name, own.decode(), {each.name: each.metrics for each in others})


def _queries(told: Mapping[str, Any]) -> dict[str, float]:
    """What the pipeline tells of continuous queries: how much there is, and how evenly the work for them is spread over
    buckets."""
    loads = told.get("loads") or [0]
    mean = sum(loads) / len(loads)
    figures = {name: told[name] for name in ("queries", "state_rows", "state_bytes", "late") if name in told}
    spread = {"skew": round(pstdev(loads) / mean, 3), "busy": sum(map(bool, loads)) / len(loads)} if mean else {}
    return {**figures, **spread}


def _document(reading: Reading) -> dict[str, Any]:
    return {
        "status": reading.status,
        "pipeline": reading.pipeline,
        "head": format_position(reading.head),
        "matched": format_position(reading.matched),
        "stored": None if reading.stored is None else format_position(reading.stored),
        "lag": reading.lag,
        "lag_seconds": round(reading.age, 3),
    }


def _inside(reading: Reading, listeners: dict[str, int]) -> dict[str, Any]:
    return {
        "listeners": listeners,
        "lanes": {
            name: {"matched": format_position(each.matched), "lag": each.lag, "lag_seconds": round(each.age, 3)}
            for name, each in reading.lanes.items()
        },
        "queries": dict(reading.queries),
        "lake": dict(reading.lake),
    }
