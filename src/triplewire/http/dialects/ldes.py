"""`GET /streams/{stream}/ldes`: the history of a stream as a Linked Data Event Stream (LDES 1.0, TREE).

```
view            1/0                     1/1  …            a node links to LDES_FANOUT others at most
 ├── 1/0 ──▶     ├── 0/0   0/1 … 0/99    ├── 0/100 …      nodes of level 0 hold the events
 └── 1/1 ──▶     ⋮
```

The stream is the collection, its events are the members; statements about an event stand outside of its graph, which
is named by its id. A node is complete when all pages below it are full, and never changes again, so that it can be
cached. The root keeps its address: when the pages outgrow it, its links move to a node below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from triplewire.http.api_documents import CacheableDocument, respond_conditionally
from triplewire.http.auth import caller
from triplewire.http.delivery.replay import TieredHistory
from triplewire.http.openapi import routes_of, serves, stream_operations
from triplewire.http.ports import ThreadPool
from triplewire.model import END, format_position
from triplewire.model.clock import format_timestamp
from triplewire.model.errors import Gone, NotFound
from triplewire.model.terms import RDF_TYPE, XSD, iri, literal
from triplewire.rdf import TRIG, Syntax, to_nquads
from triplewire.rdf.headers import HeaderValues, format_headers
from triplewire.rdf.serializer import choose_syntax, expand_name, write_document
from triplewire.security import EVERYONE, Principal, Verb, Visibility, visibility_of
from triplewire.storage.log import ports
from triplewire.storage.log.ports import Segment, SegmentedLog, StreamVolume
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.registry.streams import (
    ValidationMode,
    check_stream_name,
    read_description,
    read_validation_mode,
)

LDES_PAGE_SECONDS: Final = 86_400
"""Seconds for which a full page may be cached. It changes only by erasure and retention, and caches may have the
old page for that long."""

LDES_OPEN_PAGE_SECONDS: Final = 2
"""Seconds for which the open page may be cached: clients that follow by pages lag by that much."""

LDES_FANOUT: Final = 100
"""Links of a node in the tree over the pages: 10,000 pages are two steps from the root, 1,000,000 three. Some 40 kB
of relations."""


FindLeaves = Callable[[Sequence[int]], Sequence[Segment]]
"""Reads the full segments of a stream by their numbers."""


@dataclass(frozen=True)
class TreeNode:
    """The `number`-th node of a level; level 0 has the pages with events."""

    level: int
    number: int

    def __str__(self) -> str:
        return f"{self.level}/{self.number}"


@dataclass(frozen=True)
class TreeBranch:
    """A node below another, with the times between which its events were received, as far as they are known."""

    node: TreeNode
    since: int | None
    until: int | None


@dataclass(frozen=True)
class HistoryTree:
    """The tree over the pages of a stream."""

    volume: StreamVolume
    fanout: int = LDES_FANOUT

    @property
    def root(self) -> TreeNode:
        level = 1
        while self.fanout**level < self.volume.segments:
            level += 1
        return TreeNode(level, 0)

    def has(self, node: TreeNode) -> bool:
        """Whether there is such a node below the root."""
        return 0 <= node.level < self.root.level and node.number >= 0 and self._first(node) < self.volume.segments

    def is_complete(self, node: TreeNode) -> bool:
        return self._end(node) <= self.volume.closed

    def last(self, node: TreeNode) -> int:
        """The number of the last page below a node."""
        return min(self._end(node), self.volume.segments) - 1

    def branches(self, node: TreeNode, leaves: FindLeaves, lost: int) -> list[TreeBranch]:
        """The nodes below a node, except those whose events are all at or before the position `lost`."""
        below = [each for each in self._below(node) if self._first(each) < self.volume.segments]
        ends = {number for each in below for number in (self._first(each), self.last(each))}
        found = {leaf.number: leaf for leaf in leaves(sorted(ends))}
        if self.volume.open is not None:
            found[self.volume.open.number] = self.volume.open
        return [self._branch(each, found) for each in below if found[self.last(each)].last > lost]

    def _branch(self, node: TreeNode, leaves: dict[int, Segment]) -> TreeBranch:
        first, last = leaves[self._first(node)], leaves[self.last(node)]
        # If the clock went back, an event may have been received before the first.
        if first.number <= self.volume.unordered:
            return TreeBranch(node, None, None)
        return TreeBranch(node, first.since, last.until if self.is_complete(node) else None)

    def _below(self, node: TreeNode) -> list[TreeNode]:
        start = node.number * self.fanout
        return [TreeNode(node.level - 1, number) for number in range(start, start + self.fanout)]

    def _first(self, node: TreeNode) -> int:
        return int(node.number * self.fanout**node.level)

    def _end(self, node: TreeNode) -> int:
        return int((node.number + 1) * self.fanout**node.level)


_HEADERS = ("stream", "source", "application", "time", "received")
_DAY = 86_400


@dataclass(frozen=True)
class LdesAddresses:
    """URLs of a stream and of the nodes of its history."""

    base: str
    """The URL of the edge, without a slash at its end."""
    name: str

    @property
    def stream(self) -> str:
        return f"{self.base}/streams/{self.name}"

    @property
    def view(self) -> str:
        return f"{self.stream}/ldes"

    def node(self, node: TreeNode | None) -> str:
        """The URL of a node; None is the root."""
        return self.view if node is None else f"{self.view}/{node}"


@dataclass(frozen=True)
class StreamPromise:
    """Properties of a stream that the root of its history declares."""

    age: float | None = None
    """Retention of events in seconds; None is unlimited."""
    version_of: str | None = None
    """The predicate by which an event names the entity of which it is a version."""
    conform: bool = False
    """Whether all new events conform to the stream's shapes."""


def write_view(at: LdesAddresses, promise: StreamPromise) -> Iterator[str]:
    """Write the triples of the collection."""
    stream, root = iri(at.stream), iri(at.view)
    yield _triple(stream, expand_name("ldes:timestampPath"), expand_name("tw:received"))
    yield _triple(stream, expand_name("ldes:sequencePath"), expand_name("tw:position"))
    if promise.version_of is not None:
        yield _triple(stream, expand_name("ldes:versionOfPath"), iri(promise.version_of))
    if promise.conform:
        yield _triple(stream, expand_name("tree:shape"), iri(f"{at.stream}/shapes"))
    if promise.age is not None:
        policy, lasting = iri(f"{at.view}#retention"), literal(format_duration(promise.age), XSD + "duration")
        yield _triple(root, expand_name("ldes:retentionPolicy"), policy)
        yield _triple(policy, RDF_TYPE, expand_name("ldes:RetentionPolicy"))
        yield _triple(policy, RDF_TYPE, expand_name("ldes:DurationAgoPolicy"))
        yield _triple(policy, expand_name("ldes:fullLogDuration"), lasting)
        yield _triple(policy, expand_name("tree:value"), lasting)


def write_node(at: LdesAddresses, node: TreeNode | None, *, complete: bool) -> Iterator[str]:
    """Write the triples that every node has; None is the root."""
    stream, here = iri(at.stream), iri(at.node(node))
    yield _triple(stream, RDF_TYPE, expand_name("ldes:EventStream"))
    yield _triple(stream, expand_name("tree:view"), iri(at.view))
    yield _triple(here, RDF_TYPE, expand_name("tree:Node"))
    if node is not None:
        yield _triple(here, expand_name("dcterms:isPartOf"), iri(at.view))
    if complete:
        yield _triple(here, expand_name("ldes:immutable"), literal("true", XSD + "boolean"))


def write_relations(at: LdesAddresses, node: TreeNode | None, branches: Iterable[TreeBranch]) -> Iterator[str]:
    """Write the links from a node to those below it."""
    here = iri(at.node(node))
    for branch in branches:
        bounds = [("GreaterThanOrEqualTo", branch.since), ("LessThanOrEqualTo", branch.until)]
        known = [each for each in bounds if each[1] is not None]
        for kind, bound in known or [("", None)]:
            name = f"_:r{branch.node.level}n{branch.node.number}{kind[:1].lower()}"
            yield _triple(here, expand_name("tree:relation"), name)
            yield _triple(name, RDF_TYPE, expand_name(f"tree:{kind}Relation"))
            yield _triple(name, expand_name("tree:node"), iri(at.node(branch.node)))
            if bound is not None:
                yield _triple(name, expand_name("tree:path"), expand_name("tw:received"))
                yield _triple(name, expand_name("tree:value"), literal(format_timestamp(bound), XSD + "dateTime"))


def write_members(at: LdesAddresses, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Write events, given as rows of `ENTRIES`, as members of the collection."""
    stream = iri(at.stream)
    for entry in entries:
        event = iri(entry["event"])
        yield _triple(stream, expand_name("tree:member"), event)
        yield format_headers(entry["event"], HeaderValues(**{name: entry[name] for name in _HEADERS}))
        yield _triple(event, expand_name("tw:position"), literal(format_position(entry["position"])))
        yield to_nquads(entry["event"], entry["text"])


def format_duration(seconds: float) -> str:
    """An `xsd:duration`."""
    whole = int(seconds)
    return f"P{whole // _DAY}D" if whole % _DAY == 0 else f"PT{whole}S"


def _triple(subject: str, predicate: str, obj: str) -> str:
    return f"{subject} {predicate} {obj} .\n"


@dataclass(frozen=True)
class CurrentVisibility:
    """The visibility of principals under the current policy. It blocks."""

    policies: PolicyStore

    def find(self, principal: Principal, verb: Verb = Verb.CONSUME) -> Visibility | None:
        """None if everything is visible."""
        return visibility_of(principal, verb, self.policies.current().policy)


FindPromise = Callable[[str], StreamPromise]


@dataclass(frozen=True)
class LdesPage:
    """A document, and whether it never changes again."""

    body: bytes
    complete: bool


@dataclass(frozen=True)
class LdesHistories:
    """Serves the nodes of histories, each in bounded time, wherever their events are stored."""

    log: SegmentedLog
    history: TieredHistory
    workers: ThreadPool
    promises: FindPromise
    visibility: CurrentVisibility
    fanout: int = LDES_FANOUT

    def routes(self) -> list[web.RouteDef]:
        return routes_of(self.view, self.node)

    @serves(stream_operations.LDES_VIEW)
    async def view(self, request: web.Request) -> web.Response:
        """The root."""
        return await self._answer(request, None)

    @serves(stream_operations.LDES_NODE)
    async def node(self, request: web.Request) -> web.Response:
        """Another node. Raises NotFound if there is none yet, Gone if its events are no longer retained."""
        return await self._answer(
            request, TreeNode(int(request.match_info["level"]), int(request.match_info["number"]))
        )

    async def _answer(self, request: web.Request, node: TreeNode | None) -> web.Response:
        syntax = choose_syntax(request.headers.get("Accept"), TRIG)
        at = LdesAddresses(str(request.url.origin()), check_stream_name(request.match_info["stream"]))
        page = await self.workers.run(self.page, at, node, syntax, caller(request))
        seconds = LDES_PAGE_SECONDS if page.complete else LDES_OPEN_PAGE_SECONDS
        kept = CacheableDocument(page.body, syntax.media_type, seconds, fixed=page.complete)
        return respond_conditionally(request, kept, caller(request), links=[f'<{at.view}>; rel="collection"'])

    def page(
        self, at: LdesAddresses, node: TreeNode | None, syntax: Syntax, principal: Principal = EVERYONE
    ) -> LdesPage:
        """The root, or another node, as a principal sees it. Raises NotFound or Gone."""
        volume, visible = self.log.volume(at.name), self.visibility.find(principal)
        if volume is None or (visible is not None and at.name not in visible.streams):
            raise NotFound(f"nothing was ever published to {at.name}")
        tree, lost = HistoryTree(volume, self.fanout), self.history.lost(at.name)
        if node is None:
            lines = [*write_node(at, None, complete=False), *write_view(at, self.promises(at.name))]
            lines += self._relations(at, None, tree, lost)
            return LdesPage(write_document("".join(lines), syntax), complete=False)
        self._check(at.name, node, tree, lost)
        complete = tree.is_complete(node)
        lines = [*write_node(at, node, complete=complete)]
        lines += (
            self._relations(at, node, tree, lost) if node.level else self._members(at, volume, node.number, visible)
        )
        return LdesPage(write_document("".join(lines), syntax), complete)

    def _check(self, stream: str, node: TreeNode, tree: HistoryTree, lost: int) -> None:
        if not tree.has(node):
            raise NotFound(f"the history of {stream} has no page {node}, or not yet; begin at /streams/{stream}/ldes")
        if self._leaf(tree.volume, tree.last(node)).last <= lost:
            raise Gone(f"the events of page {node} of {stream} are no longer retained; begin at /streams/{stream}/ldes")

    def _relations(self, at: LdesAddresses, node: TreeNode | None, tree: HistoryTree, lost: int) -> Iterator[str]:
        branches = tree.branches(node or tree.root, lambda numbers: self.log.segments(at.name, numbers), lost)
        return write_relations(at, node, branches)

    def newest(self, stream: str, visible: Visibility | None) -> Iterator[dict[str, Any]]:
        """The events of the newest page, as far as they are visible."""
        volume = self.log.volume(stream)
        if volume is not None and volume.segments:
            yield from self._entries(stream, self._leaf(volume, volume.segments - 1), visible)

    def _members(
        self, at: LdesAddresses, volume: StreamVolume, number: int, visible: Visibility | None
    ) -> Iterator[str]:
        return write_members(at, self._entries(at.name, self._leaf(volume, number), visible))

    def _entries(self, stream: str, leaf: Segment, visible: Visibility | None) -> Iterator[dict[str, Any]]:
        for first, last in leaf.ranges:
            after = first - 1
            while after < last:
                # Gaps are not reported here: lost events are not on the page.
                found = self.history.read(stream, after, last, ports.SEGMENT_EVENTS, known_loss=END)
                for entry in found.entries.to_pylist():
                    text = entry["text"] if visible is None else visible.redacted(stream, entry["event"], entry["text"])
                    if text is not None:
                        yield {**entry, "text": text}
                after = found.position

    def _leaf(self, volume: StreamVolume, number: int) -> Segment:
        if volume.open is not None and number == volume.open.number:
            return volume.open
        (leaf,) = self.log.segments(volume.stream, [number])
        return leaf


@dataclass(frozen=True)
class StreamPromises:
    """Reads the promise of a stream from the registry and the settings."""

    registry: Registry
    ages: Callable[[str], float | None]

    def __call__(self, stream: str) -> StreamPromise:
        # In mode `mark` not all events conform.
        conform = read_validation_mode(self.registry, stream) is ValidationMode.REFUSE
        return StreamPromise(self.ages(stream), read_description(self.registry, stream).version_of, conform)
