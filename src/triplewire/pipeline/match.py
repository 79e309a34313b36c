"""The `match` query: events in, matches out.

Workers keep a matcher across batches and bring it up to the position at which their part of the batch ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.limits import BATCH_EVENTS
from triplewire.matching.index.groups import warm_up
from triplewire.matching.matcher import Matcher
from triplewire.model import MATCHES
from triplewire.pipeline.blocks import BLOCKS, packed, unpacked
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.lanes import moved, opened
from triplewire.pipeline.workers import keep, lighten
from triplewire.registry.ontologies import ONTOLOGY
from triplewire.registry.ports import Change, Registry

matchers: dict[object, tuple[Registry, Matcher]] = {}
"""Of this worker process, by the way in which their registry is opened."""


def matched(blocks: DataFrame, open_registry: Callable[[], Registry], costs: Costs) -> DataFrame:
    """From a frame of `BLOCKS` to one of blocks of `MATCHES`. A pure function of the entries and of the registry as it
    was at their positions."""
    match = partial(_match, open_registry, costs)
    return blocks.mapInArrow(match, from_arrow_schema(BLOCKS))


def _match(
    open_registry: Callable[[], Registry], costs: Costs, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    lighten()
    for entries in unpacked(batches):
        with spending(costs.kernel):
            found = matches(open_registry, entries)
        costs.shapes.add(_kept(open_registry)[1].spent())
        yield from packed(found)


def collected(blocks: DataFrame) -> pa.Table:
    """In the driver: all matches of a frame of blocks."""
    return pa.concat_tables([MATCHES.empty_table(), *unpacked(blocks.toArrow().to_batches())])


def matches(open_registry: Callable[[], Registry], entries: pa.Table) -> pa.Table:
    """Those of a batch of `ENTRIES`, in order, each matched against the registry as it was at its position. Where an
    ontology changes within the batch, its new version holds from there on, and not before."""
    registry, matcher = _kept(open_registry)
    positions = entries["position"].to_numpy()
    first, last = int(positions[0]), int(positions[-1])
    changes = registry.changes(matcher.version, last) if last > matcher.version else ()
    marks = [each.position - 1 for each in changes if each.kind == ONTOLOGY and each.position > first]
    left = moved(open_registry, changes, first)
    found, start = [MATCHES.empty_table()], 0
    for upto in [*marks, last]:
        _learn(matcher, changes, upto)
        stop = int(np.searchsorted(positions, upto, "right"))
        found.append(matcher.match(entries.slice(start, stop - start), left))
        start = stop
    return pa.concat_tables(found)


def _learn(matcher: Matcher, changes: Sequence[Change], upto: int) -> None:
    """Bring a matcher up to a position, if it is not as far yet."""
    if upto <= matcher.version:
        return
    news = [each for each in changes if matcher.version < each.position <= upto]
    matcher.apply(news, upto)
    # The parts of one batch may come in any order, so what ended within a batch's length is still needed.
    matcher.forget(upto - BATCH_EVENTS)
    if news:
        keep()


def _kept(open_registry: Callable[[], Registry]) -> tuple[Registry, Matcher]:
    """This worker's registry and matcher."""
    key = opened(open_registry)
    if key not in matchers:
        warm_up()
        matchers[key] = (open_registry(), Matcher())
    return matchers[key]
