"""The `match` query: events in, matches out.

Workers keep a matcher across batches and bring it up to the position at which their part of the batch ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.limits import BATCH_EVENTS
from triplewire.matching.index.groups import warm_up
from triplewire.matching.matcher import Matcher
from triplewire.model import MATCHES, MATTER
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.workers import keep, lighten
from triplewire.registry.ports import Registry

matchers: dict[object, tuple[Registry, Matcher]] = {}
"""Of this worker process, by the way in which their registry is opened."""


def matched(entries: DataFrame, open_registry: Callable[[], Registry], costs: Costs) -> DataFrame:
    """From a frame of `ENTRIES` to a frame of `MATCHES`. A pure function of the entries and of the registry as it
    was at their positions."""
    match = partial(_match, open_registry, costs)
    return entries.select(*MATTER).mapInArrow(match, from_arrow_schema(MATCHES))


def _match(
    open_registry: Callable[[], Registry], costs: Costs, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    lighten()
    for batch in batches:
        if batch.num_rows:
            entries = pa.Table.from_batches([batch])
            with spending(costs.kernel):
                matches = matcher_of(open_registry, entries).match(entries)
            yield from matches.to_batches()


def matcher_of(open_registry: Callable[[], Registry], entries: pa.Table) -> Matcher:
    """This worker's matcher, knowing every registry change up to the last of the entries."""
    key = _key(open_registry)
    if key not in matchers:
        warm_up()
        matchers[key] = (open_registry(), Matcher())
    registry, matcher = matchers[key]
    last = pc.max(entries["position"]).as_py()
    if last > matcher.version:
        changes = registry.changes(matcher.version, last)
        matcher.apply(changes, last)
        # The parts of one batch may come in any order, so what ended within a batch's length is still needed.
        matcher.forget(last - BATCH_EVENTS)
        if changes:
            keep()
    return matcher


def _key(opener: Callable[[], Registry]) -> object:
    """Equal for openers that were pickled from one and the same, as Spark does for every task: a partial is not equal
    to its own copy, but its parts are."""
    return (opener.func, opener.args) if isinstance(opener, partial) else opener
