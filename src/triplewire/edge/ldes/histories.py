"""`GET /streams/{stream}/ldes`: the history of a stream, for those who read it at their own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from triplewire.access import EVERYONE, Principal, Sight
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import reading
from triplewire.edge.discovery.sightings import Sightings
from triplewire.edge.freshness import Fresh, fresh
from triplewire.edge.ldes import statements
from triplewire.edge.ldes.statements import Addresses, Promise
from triplewire.edge.ldes.trees import Node, Tree
from triplewire.edge.past.backlogs import Backlog
from triplewire.edge.workers import Workers
from triplewire.model import END
from triplewire.model.errors import Gone, NotFound
from triplewire.rdf import TRIG, Syntax
from triplewire.rdf.serializer import choose_syntax, write_document
from triplewire.storage.log.ports import Segment, SegmentedLog, StreamVolume
from triplewire.storage.registry.streams import check_stream_name

Promises = Callable[[str], Promise]


@dataclass(frozen=True)
class Page:
    """A document, and whether it never changes again."""

    body: bytes
    complete: bool


class Histories:
    """Writes the nodes of histories, each in bounded time, wherever their events lie."""

    def __init__(
        self, log: SegmentedLog, backlog: Backlog, workers: Workers, promises: Promises, sightings: Sightings
    ) -> None:
        self._log = log
        self._backlog = backlog
        self._workers = workers
        self._promises = promises
        self._sightings = sightings

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/streams/{stream}/ldes", self.view),
            web.get(r"/streams/{stream}/ldes/{level:\d{1,2}}/{number:\d{1,15}}", self.node),
        ]

    @serves(reading.VIEW)
    async def view(self, request: web.Request) -> web.Response:
        """The first node: what the stream promises, and where its events are."""
        return await self._answer(request, None)

    @serves(reading.NODE)
    async def node(self, request: web.Request) -> web.Response:
        """Another node. Raises NotFound where there is none yet, Gone where its events are kept no more."""
        return await self._answer(request, Node(int(request.match_info["level"]), int(request.match_info["number"])))

    async def _answer(self, request: web.Request, place: Node | None) -> web.Response:
        syntax = choose_syntax(request.headers.get("Accept"), TRIG)
        at = Addresses(str(request.url.origin()), check_stream_name(request.match_info["stream"]))
        page = await self._workers.run(self.page, at, place, syntax, caller(request))
        seconds = limits.LEAF_SECONDS if page.complete else limits.LEAF_OPEN_SECONDS
        kept = Fresh(page.body, syntax.media_type, seconds, fixed=page.complete)
        return fresh(request, kept, caller(request), links=[f'<{at.view}>; rel="collection"'])

    def page(self, at: Addresses, place: Node | None, syntax: Syntax, principal: Principal = EVERYONE) -> Page:
        """The first node, or another, as somebody sees it. Raises NotFound or Gone."""
        volume, sight = self._log.volume(at.name), self._sightings.of(principal)
        if volume is None or (sight is not None and at.name not in sight.streams):
            raise NotFound(f"nothing was ever published to {at.name}")
        tree, lost = Tree(volume), self._backlog.lost(at.name)
        if place is None:
            lines = [*statements.node(at, None, complete=False), *statements.view(at, self._promises(at.name))]
            lines += self._relations(at, None, tree, lost)
            return Page(write_document("".join(lines), syntax), complete=False)
        self._check(at.name, place, tree, lost)
        complete = tree.is_complete(place)
        lines = [*statements.node(at, place, complete=complete)]
        lines += (
            self._relations(at, place, tree, lost) if place.level else self._members(at, volume, place.number, sight)
        )
        return Page(write_document("".join(lines), syntax), complete)

    def _check(self, stream: str, place: Node, tree: Tree, lost: int) -> None:
        if not tree.has(place):
            raise NotFound(f"the history of {stream} has no page {place}, or not yet; begin at /streams/{stream}/ldes")
        if self._leaf(tree.volume, tree.last(place)).last <= lost:
            raise Gone(f"what was on page {place} of {stream} is kept no more; begin at /streams/{stream}/ldes")

    def _relations(self, at: Addresses, place: Node | None, tree: Tree, lost: int) -> Iterator[str]:
        node = tree.root if place is None else place
        branches = tree.branches(node, lambda numbers: self._log.leaves(at.name, numbers), lost)
        return statements.relations(at, place, branches)

    def newest(self, stream: str, sight: Sight | None) -> Iterator[dict[str, Any]]:
        """The events of the newest page, as somebody sees them."""
        volume = self._log.volume(stream)
        if volume is not None and volume.leaves:
            yield from self._entries(stream, self._leaf(volume, volume.leaves - 1), sight)

    def _members(self, at: Addresses, volume: StreamVolume, number: int, sight: Sight | None) -> Iterator[str]:
        return statements.members(at, self._entries(at.name, self._leaf(volume, number), sight))

    def _entries(self, stream: str, leaf: Segment, sight: Sight | None) -> Iterator[dict[str, Any]]:
        for first, last in leaf.stretches:
            after = first - 1
            while after < last:
                # Nobody is told of gaps here: what is gone is not on the page.
                found = self._backlog.older(stream, after, last, limits.LEAF_EVENTS, told=END)
                for entry in found.entries.to_pylist():
                    text = entry["text"] if sight is None else sight.redacted(stream, entry["event"], entry["text"])
                    if text is not None:
                        yield {**entry, "text": text}
                after = found.reached

    def _leaf(self, volume: StreamVolume, number: int) -> Segment:
        if volume.open is not None and number == volume.open.number:
            return volume.open
        (leaf,) = self._log.leaves(volume.stream, [number])
        return leaf
