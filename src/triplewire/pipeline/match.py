"""The `match` query: events in, matches out.

Workers keep a matcher across batches and bring it up to the position at which their part of the batch ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.config.limits import BATCH_EVENTS
from triplewire.matching.index.groups import warm_up
from triplewire.matching.matcher import Matcher
from triplewire.model import MATCHES
from triplewire.pipeline.blocks import BLOCKS, packed, unpacked
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.workers import keep, lighten
from triplewire.registry.ontologies import ONTOLOGY
from triplewire.registry.ports import Registry

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
        yield from packed(found)


def collected(blocks: DataFrame) -> pa.Table:
    """In the driver: all matches of a frame of blocks."""
    return pa.concat_tables([MATCHES.empty_table(), *unpacked(blocks.toArrow().to_batches())])


def matches(open_registry: Callable[[], Registry], entries: pa.Table) -> pa.Table:
    """Those of a batch of `ENTRIES`, each matched against the registry as it was at its position."""
    parts = _parts(open_registry, entries)
    return pa.concat_tables([matcher_of(open_registry, part).match(part) for part in parts])


def _parts(open_registry: Callable[[], Registry], entries: pa.Table) -> Iterator[pa.Table]:
    """The entries, cut where an ontology changes: from there on, and not before, its new version holds."""
    registry, matcher = _kept(open_registry)
    positions = entries["position"].to_numpy()
    changes = registry.changes(max(matcher.version, int(positions.min())), int(positions.max()))
    marks = [change.position for change in changes if change.kind == ONTOLOGY]
    ends = np.searchsorted(positions, [*marks, positions[-1] + 1])
    for start, stop in pairwise([0, *ends.tolist()]):
        if stop > start:
            yield entries.slice(start, stop - start)


def matcher_of(open_registry: Callable[[], Registry], entries: pa.Table) -> Matcher:
    """This worker's matcher, knowing every registry change up to the last of the entries."""
    registry, matcher = _kept(open_registry)
    last = pc.max(entries["position"]).as_py()
    if last > matcher.version:
        changes = registry.changes(matcher.version, last)
        matcher.apply(changes, last)
        # The parts of one batch may come in any order, so what ended within a batch's length is still needed.
        matcher.forget(last - BATCH_EVENTS)
        if changes:
            keep()
    return matcher


def _kept(open_registry: Callable[[], Registry]) -> tuple[Registry, Matcher]:
    key = _key(open_registry)
    if key not in matchers:
        warm_up()
        matchers[key] = (open_registry(), Matcher())
    return matchers[key]


def _key(opener: Callable[[], Registry]) -> object:
    """Equal for openers that were pickled from one and the same, as Spark does for every task: a partial is not equal
    to its own copy, but its parts are."""
    return (opener.func, opener.args) if isinstance(opener, partial) else opener
