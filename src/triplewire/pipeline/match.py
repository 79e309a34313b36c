"""The `match` query: events in, matches out.

Workers keep a matcher across batches; it knows the registry up to the position at which their part of the batch ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from triplewire.matching.index.groups import warm_up
from triplewire.matching.matcher import Matcher
from triplewire.model import MATCHES
from triplewire.pipeline.blocks import BLOCKS, packed, unpacked
from triplewire.pipeline.costs import Costs, spending
from triplewire.pipeline.ports import Ports
from triplewire.pipeline.workers import keep, lighten

matchers: dict[Path, Matcher] = {}
"""Of this worker process, by the directory that they share with other workers."""


def matched(blocks: DataFrame, ports: Ports, costs: Costs) -> DataFrame:
    """From a frame of `BLOCKS` to one of blocks of `MATCHES`. A pure function of the entries and of the registry as it
    was at their positions."""
    match = partial(_match, ports, costs)
    return blocks.mapInArrow(match, from_arrow_schema(BLOCKS))


def _match(ports: Ports, costs: Costs, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lighten()
    for entries in unpacked(batches):
        with spending(costs.kernel):
            found = matches(ports, entries)
        costs.shapes.add(_kept(ports).spent())
        yield from packed(found)


def collected(blocks: DataFrame) -> pa.Table:
    """In the driver: all matches of a frame of blocks."""
    return pa.concat_tables([MATCHES.empty_table(), *unpacked(blocks.toArrow().to_batches())])


def matches(ports: Ports, entries: pa.Table) -> pa.Table:
    """Those of a batch of `ENTRIES`, in order, each matched against the registry as it was at its position."""
    matcher = _kept(ports)
    before = matcher.learned
    found = matcher.match(entries)
    if matcher.learned != before:
        keep()
    return found


def _kept(ports: Ports) -> Matcher:
    """This worker's matcher."""
    if ports.index_files not in matchers:
        warm_up()
        matchers[ports.index_files] = Matcher(ports.open_registry(), ports.index_files)
        keep()
    return matchers[ports.index_files]
