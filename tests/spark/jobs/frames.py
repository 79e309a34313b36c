"""Frames without Spark: what the driver does batch by batch can be tested in one process, and often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from triplewire.spark.jobs import stateful

Function = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]


class Frame:
    """Some partitions, and the few things that are asked of a frame. Functions run where they are called."""

    task = 0
    """The partition at which one works."""

    def __init__(self, *partitions: Sequence[pa.RecordBatch]) -> None:
        self._partitions = partitions

    def mapInArrow(self, function: Function, schema: object) -> Frame:
        made = []
        for Frame.task, each in enumerate(self._partitions):
            made.append([*function(iter(each))])
        return Frame(*made)

    def repartitionById(self, count: int, name: str) -> Frame:
        batches = [batch for each in self._partitions for batch in each]
        return Frame(*([_of(batch, name, place) for batch in batches] for place in range(count)))

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches([batch for each in self._partitions for batch in each])


def _of(batch: pa.RecordBatch, name: str, place: int) -> pa.RecordBatch:
    return batch.filter(pa.array(batch[name].to_numpy() == place))


def one_process(patch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A session whose workers are this process."""
    patch.setattr(stateful, "current_partition", lambda: Frame.task)
    for name in ("hide_pandas", "freeze_heap"):
        patch.setattr(stateful, name, lambda: None)
    return SimpleNamespace(createDataFrame=lambda table: Frame(table.to_batches()), range=_range)


def _range(start: int, end: int, step: int, parts: int) -> Frame:
    """As many partitions as there are numbers."""
    assert (end - start) // step == parts
    return Frame(*([pa.record_batch({"id": [number]})] for number in range(start, end, step)))


class Account:
    """Nothing takes any time."""

    value = 0.0

    def add(self, seconds: Any) -> None:  # noqa: ANN401
        pass
