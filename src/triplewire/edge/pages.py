"""`GET /events`: what the log keeps, a page at a time, for programs that read it in stretches of positions."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from aiohttp import web

from triplewire.access import Principal, Verb, sight_of
from triplewire.access.redactions import redacted
from triplewire.config import limits
from triplewire.contract import serves
from triplewire.contract.callers import caller
from triplewire.contract.catalogue import consuming
from triplewire.edge.past.gaps import Gap, gap_after
from triplewire.edge.ports import Entries
from triplewire.edge.workers import Workers
from triplewire.model import END, MATCHED_COLUMNS, START, format_position, parse_position
from triplewire.storage.registry.security import PolicyStore
from triplewire.storage.registry.streams import check_stream_name

ARROW = "application/vnd.apache.arrow.stream"


@dataclass(frozen=True)
class Wanted:
    """The events at positions p with `after < p <= upto`, of one stream or of all."""

    after: int
    upto: int
    stream: str | None


class Pages:
    """Reads the log for who asks, boundedly much at a time. What a page holds is fixed by its two ends, and by what
    they see who ask."""

    def __init__(self, log: Entries, policies: PolicyStore, workers: Workers, size: int = limits.PAGE_BYTES) -> None:
        self._log = log
        self._policies = policies
        self._workers = workers
        self._size = size

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/events", self.page, allow_head=False)]

    @serves(consuming.READ)
    async def page(self, request: web.Request) -> web.Response:
        """An Arrow stream of events in order. Its metadata tells up to where that is all of them (`reached`), and the
        first position that is kept (`earliest`) if some that were asked for are gone."""
        body = await self._workers.run(self._read, _wanted(request), caller(request))
        return web.Response(body=body, content_type=ARROW)

    def _read(self, wanted: Wanted, asking: Principal) -> bytes:
        upto = min(wanted.upto, self._log.head())
        if upto <= wanted.after:
            return _written(self._log.read(START, START, 1), wanted.after, None)
        reached = self._log.reach(wanted.after, upto, self._size)
        entries = self._log.read(wanted.after, reached, limits.PAGE_EVENTS)
        if entries.num_rows == limits.PAGE_EVENTS:
            reached = entries["position"][-1].as_py()
        if wanted.stream is not None:
            entries = entries.filter(pc.equal(entries["stream"], wanted.stream))
        sight = sight_of(asking, Verb.CONSUME, self._policies.current().policy)
        entries = entries if sight is None else redacted(sight, entries)
        return _written(entries, reached, gap_after(self._log, None, wanted.after, wanted.stream))


def _wanted(request: web.Request) -> Wanted:
    asked = request.query
    after = parse_position(asked["after"]) if "after" in asked else START
    upto = parse_position(asked["upto"]) if "upto" in asked else END
    return Wanted(after, upto, check_stream_name(asked["stream"]) if "stream" in asked else None)


def _written(entries: pa.Table, reached: int, gap: Gap | None) -> bytes:
    told = {"reached": format_position(reached)} | ({} if gap is None else {"earliest": format_position(gap.earliest)})
    table = entries.select(MATCHED_COLUMNS).replace_schema_metadata(told)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written
