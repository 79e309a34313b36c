"""Filtered events: the live source for clients with a stream filter or a limited visibility, and the resolver that
picks the source for a request.

It has a topic and a worker of its own, so that clients of whole streams do not wait for queries and plug-ins. A
stateful plug-in is shared by all live clients of one filter; a client that replays history has its own until it is
live, and the first one's then becomes that of all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from triplewire.http.delivery.channels import CachedMessages, Channel, Listener, render_events
from triplewire.http.delivery.events import EntryPage, EventSource, LogEventSource, SourceContext
from triplewire.http.delivery.options import LoopLoad
from triplewire.http.delivery.replay import StreamHistory
from triplewire.http.delivery.topics import HistoryFailed, LiveTopic, TopicHistory, TopicReader
from triplewire.http.formats.messages import (
    EDGE_STOPS,
    NO_FRAMES,
    EntryPieces,
    Frames,
    MessageFormat,
    failed_message,
    undecided_notice,
)
from triplewire.http.stream_filters.evaluator import FilterEvaluator, FilterResult
from triplewire.http.stream_filters.parameters import StreamView
from triplewire.http.stream_filters.plugins import PluginFilter
from triplewire.model import START
from triplewire.security import EVERYONE, Principal, Visibility
from triplewire.storage.log.ports import EdgeLog

logger = logging.getLogger(__name__)


class FilteredTopic(LiveTopic[StreamView]):
    """A topic that tells its clients from time to time how far they are, since few events may pass. It has the plug-in
    filters of its views."""

    def __init__(
        self,
        position: int = 0,
        load: LoopLoad | None = None,
        *,
        on_enter: Callable[[], None] = lambda: None,
        on_close: Callable[[StreamView, Channel], None] = lambda key, channel: None,
    ) -> None:
        super().__init__(position, load, on_enter=on_enter, on_close=on_close)
        self.plugins: dict[StreamView, PluginFilter] = {}

    async def listen(self, key: StreamView, listener: Listener, history: TopicHistory) -> None:
        await super().listen(key, listener, history)
        if not listener.closed:
            self._share_plugin(key, history)

    def attach(self, key: StreamView, reader: TopicReader, history: TopicHistory) -> None:
        super().attach(key, reader, history)
        self._share_plugin(key, history)

    def keep_alive(self) -> None:
        for view in (*self,):
            self.push(view, CachedMessages(partial(NO_FRAMES.with_position, self.settled)))
        super().keep_alive()

    def _share_plugin(self, key: StreamView, history: TopicHistory) -> None:
        plugin = history.plugin if isinstance(history, FilteredHistory) else None
        if plugin is not None:
            self.plugins.setdefault(key, plugin)


class FilteredEventSource(LogEventSource):
    """Brings new entries that pass into a topic whose keys are views with filters."""

    topic: FilteredTopic

    def __init__(
        self,
        whole: EventSource,
        log: EdgeLog,
        evaluator: FilterEvaluator,
        context: SourceContext,
        topic: FilteredTopic | None = None,
    ) -> None:
        super().__init__(FilteredTopic(log.head()) if topic is None else topic, log, whole.visibility, context)
        self._whole = whole
        self._evaluator = evaluator

    def skip(self, head: int = START) -> bool:
        """Move on to where the whole streams are, if there is no client."""
        if not self.topic.is_empty:
            return False
        self.topic.position = max(self.topic.position, self._whole.topic.position)
        self.topic.settle()
        self.topic.plugins.clear()
        return True

    def history(
        self,
        view: StreamView,
        plugin: PluginFilter | None,
        known_loss: int = START,
        check: Callable[[], None] = lambda: None,
    ) -> FilteredHistory:
        """Return the history of a view for one client, which knows what is lost up to a position."""
        stream = self._whole.history(view.stream, lambda: self.topic.position, known_loss, check)
        return FilteredHistory(view, plugin, stream, self._evaluator)

    async def _deliver(self, page: EntryPage, after: int) -> None:
        # Clients that enter from here on have all of this from history; those that are here are in these views.
        views, self.topic.position = {*self.topic}, page.position
        plugins = self.topic.plugins
        self.topic.plugins = {view: plugins[view] for view in views if view in plugins}
        try:
            self._push(await self._evaluator.evaluate(page.entries, views, self.topic.plugins))
        except Exception:
            # A plug-in cannot be shown the same events again: clients reconnect to where they were.
            logger.exception("the evaluation of stream filters failed")
            for view in views:
                self.topic.finish(view, EDGE_STOPS)

    def _push(self, result: FilterResult) -> None:
        rendered: dict[int, tuple[EntryPieces, CachedMessages]] = {}
        for view, table in result.passed.items():
            undecided = result.undecided.get(view, ())
            if (table.num_rows or undecided) and view in self.topic:
                if id(table) not in rendered:
                    pieces = EntryPieces(table)
                    rendered[id(table)] = pieces, CachedMessages(partial(render_events, pieces))
                pieces, messages = rendered[id(table)]
                if undecided:
                    messages = CachedMessages(partial(_render_with_undecided, messages, undecided))
                self._context.push(self.topic, view, messages, pieces)
        for view, detail in result.failed.items():
            self.topic.plugins.pop(view, None)
            self.topic.finish(view, failed_message(detail))


@dataclass(frozen=True)
class FilteredHistory:
    """The history of one client through its own filter. Each step ends with the position that was reached: few events
    may pass, and a client that reconnects begins there."""

    view: StreamView
    plugin: PluginFilter | None
    stream: StreamHistory
    evaluator: FilterEvaluator

    @property
    def floor(self) -> int:
        return self.stream.floor

    async def step(self, cursor: int, format: MessageFormat) -> tuple[Frames, int]:
        table, position = await self.stream.page(cursor)
        undecided: Sequence[int] = ()
        if table.num_rows:
            plugins = {} if self.plugin is None else {self.view: self.plugin}
            result = await self.evaluator.evaluate(table, [self.view], plugins, replay=True)
            if self.view in result.failed:
                raise HistoryFailed(result.failed[self.view])
            table, undecided = result.passed[self.view], result.undecided.get(self.view, ())
        frames = await self.stream.render(table, format)
        return _add_undecided(frames, undecided, format).with_position(position, format), position


def _render_with_undecided(messages: CachedMessages, undecided: Sequence[int], format: MessageFormat) -> Frames:
    return _add_undecided(messages.frames(format), undecided, format)


def _add_undecided(frames: Frames, undecided: Sequence[int], format: MessageFormat) -> Frames:
    """Insert a notice for each event on which a query took too long."""
    if not undecided:
        return frames
    notices = ((position, undecided_notice(format, position)) for position in undecided)
    parts = sorted([*zip(frames.positions, frames.parts, strict=True), *notices])
    return Frames([position for position, _ in parts], [part for _, part in parts])


@dataclass(frozen=True)
class ResolvedStream:
    """A topic, the key to listen to in it, and the history for one client."""

    topic: LiveTopic[StreamView]
    key: StreamView
    history: TopicHistory


@dataclass(frozen=True)
class StreamResolver:
    """Picks the live source for a request: whole streams, or those with a filter or a limited visibility."""

    events: EventSource
    filtered: FilteredEventSource
    evaluator: FilterEvaluator

    async def visibility(self, principal: Principal) -> Visibility | None:
        """Return what a principal sees by the policy in force; None is everything."""
        await self.events.prepare()
        return self.events.visibility.visibility(principal)

    async def resolve(
        self,
        stream: str,
        parameters: Iterable[tuple[str, str]],
        known_loss: int = START,
        principal: Principal = EVERYONE,
    ) -> ResolvedStream:
        """Resolve the address of a stream for one client, which knows what is lost up to a position. Raises what
        `parse_stream_filter` and `FilterEvaluator.admit` raise."""
        asked, visibility = await self.evaluator.parse(parameters), await self.visibility(principal)
        if asked is None and visibility is None:
            view = StreamView(stream)
            whole = self.events.history(stream, known_loss=known_loss, check=self._watch(view, principal))
            return ResolvedStream(self.events.topic, view, whole)
        filter, plugin = (None, None) if asked is None else await self.evaluator.admit(asked)
        view = StreamView(stream, filter, visibility)
        self.filtered.skip()
        history = self.filtered.history(view, plugin, known_loss, self._watch(view, principal))
        return ResolvedStream(self.filtered.topic, view, history)

    async def resolve_answers(self, stream: str, query: str, known_loss: int = START) -> ResolvedStream:
        """Resolve the answers of a continuous query, which are events of a stream. A client that may read the query
        sees all of them."""
        await self.events.prepare()
        view = StreamView(stream, query=query)
        self.filtered.skip()
        return ResolvedStream(self.filtered.topic, view, self.filtered.history(view, None, known_loss))

    def _watch(self, view: StreamView, principal: Principal) -> Callable[[], None]:
        """Note a client; return the check that it still sees what it is sent."""
        self.events.visibility.enter(view, principal)
        return partial(self.events.visibility.check, view, principal)
