"""Counts: how many pairs of an event and a subscription a table of matches stands for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.matching.index import Membership, Memberships
from triplewire.matching.index.programs import Opcode
from triplewire.matching.shapes import Shape
from triplewire.model import Subscription

Values: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Members:
    """The members of each group: how they hold a value against their thresholds, and these in order."""

    groups: Mapping[int, tuple[Membership, Values]]

    @classmethod
    def of(cls, subscriptions: Iterable[Subscription], shapes: Iterable[Shape]) -> Members:
        """Subscriptions that an index does not decide are in no group: matches name them one by one."""
        kinds = {shape.key: Memberships(shape) for shape in shapes}
        firsts, thresholds = dict[int, Membership](), defaultdict[int, list[float]](list)
        for each in subscriptions:
            if (found := kinds[each.shape].of(each.constants)) is not None:
                firsts.setdefault(found.group, found)
                thresholds[found.group].append(found.threshold)
        return cls({group: (firsts[group], np.sort(thresholds[group])) for group in firsts})

    def concerned(self, group: int, highest: Values, lowest: Values) -> int:
        """How many members all events together concern, each given by the highest and the lowest of its values."""
        membership, thresholds = self.groups[group]
        match membership.op:
            case None:
                return len(thresholds) * len(highest)
            case Opcode.GREATER:
                return int(np.searchsorted(thresholds, highest, "left").sum())
            case Opcode.GREATER_EQUAL:
                return int(np.searchsorted(thresholds, highest, "right").sum())
        below = np.searchsorted(thresholds, lowest, "right" if membership.op is Opcode.LESS else "left")
        return len(thresholds) * len(lowest) - int(below.sum())


def matches_of(table: pa.Table, members: Members) -> int:
    """Of a `MATCHES` table. A row of a group counts for the members whose threshold it passes, and several rows of an
    event and a group, one for each solution, count once."""
    alone = table.num_rows - table["subscription"].null_count
    grouped = table.filter(pc.is_valid(table["group"])).select(["position", "group", "value"])
    best = grouped.group_by(["position", "group"]).aggregate([("value", "max"), ("value", "min")]).sort_by("group")
    groups, starts = np.unique(best["group"].to_numpy(), return_index=True)
    parts = (np.split(best[name].to_numpy(), starts[1:]) for name in ("value_max", "value_min"))
    pairs = zip(groups.tolist(), *parts, strict=False)
    return int(alone) + sum(members.concerned(group, highest, lowest) for group, highest, lowest in pairs)


def at(table: pa.Table, position: int) -> pa.Table:
    """The rows of one event."""
    return table.filter(pc.equal(table["position"], position))
