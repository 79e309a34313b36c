"""Leftovers: events about which the index does not decide for some groups, such as those with long numbers.

The evaluator decides about them, for the members of just these groups. They are read from the registry when such an
event first comes, stay at hand while there is room, and all go together when there is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa

from triplewire.matching.evaluator import Evaluator
from triplewire.matching.index.columns import Torn
from triplewire.matching.index.generations import Generations
from triplewire.matching.journals import Changes, made_at
from triplewire.matching.known import Known
from triplewire.matching.ontologies import Closures
from triplewire.matching.portions import PATIENT, Patience
from triplewire.model import END
from triplewire.native.arrays import Int32, Int64, Records


class Leftovers:
    """The evaluator for leftovers, and whom it knows at the moment."""

    def __init__(
        self,
        duck: duckdb.DuckDBPyConnection,
        closures: Closures,
        registry: Changes,
        most: int,
        patience: Patience = PATIENT,
    ) -> None:
        self._duck = duck
        self._closures = closures
        self._registry = registry
        self._most = most
        self._patience = patience
        self.spent = defaultdict[str, float](float)
        """The CPU seconds that shapes took, until somebody clears it."""
        self._last = -1
        """The change of the registry up to which it knows all members of the groups that it knows."""
        self._groups = np.zeros(0, np.int32)
        self._since, self._group = np.zeros(0, np.int64), np.zeros(0, np.int32)
        """Where those that are at hand were made, in order, and the group of each."""
        self._begin()

    def match(
        self, entries: pa.Table, pairs: Records, generations: Generations, shapes: Mapping[int, Known]
    ) -> list[pa.Table]:
        """What matches of pairs of event (its place among the entries) and group. `shapes` are those of programs; what
        is of none of them came later than the events. Raises Torn where groups have other numbers by now."""
        programs = generations.files.columns["groups"].data["program"][pairs["group"]]
        pairs = pairs[np.isin(programs, [*shapes])]
        groups = np.unique(pairs["group"])
        since, group = self._missing(groups, generations)
        if len(self._since) + len(since) > self._most:
            self._begin()
            since, group = self._missing(groups, generations)
        found = []
        for start in range(0, max(1, len(since)), self._most):
            if start:
                self._begin()
            part = slice(start, start + self._most)
            self._load(since[part], group[part], shapes)
            found += self._matched(entries, pairs, generations, shapes)
        if len(since) > self._most:
            self._begin()
        return found

    def _missing(self, groups: Int32, generations: Generations) -> tuple[Int64, Int32]:
        """Those of groups that are not at hand: where they were made, in order, and the group of each. Groups of which
        all were at hand may have new members when the registry has changed."""
        last = int(generations.files.header["last"])
        if last != self._last:
            self._last, self._groups = last, np.zeros(0, np.int32)
        since, group = self._members(groups[~np.isin(groups, self._groups)], generations)
        self._groups = np.union1d(self._groups, groups)
        fresh = ~np.isin(since, self._since)
        return since[fresh], group[fresh]

    def _begin(self) -> None:
        """Know nobody."""
        for (table,) in self._duck.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            if table.startswith("left_"):
                self._duck.execute(f"DROP TABLE {table}")
        self._evaluator = Evaluator(self._duck, self._closures, "left", self._patience, spent=self.spent)
        self._shapes: set[str] = set()
        self._groups = np.zeros(0, np.int32)
        self._since, self._group = np.zeros(0, np.int64), np.zeros(0, np.int32)

    def _members(self, groups: Int32, generations: Generations) -> tuple[Int64, Int32]:
        """Where the subscriptions of groups were made, in order, and the group of each."""
        if not len(groups):
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        known = generations.files
        with generations.locked() as store:
            if store.files is not known:
                raise Torn("groups have other numbers")
            since, group = store.members_of(groups)
        order = np.argsort(since)
        return since[order], group[order]

    def _load(self, since: Int64, group: Int32, shapes: Mapping[int, Known]) -> None:
        changes = list(made_at(self._registry, since))
        asked = {each.value["shape"] for each in changes if each.value is not None}
        fresh = [each.change for each in shapes.values() if each.change.key in asked - self._shapes]
        self._shapes |= asked
        # by their positions: a subscription may be there in two versions, of which none ends the other here
        named = [type(each)(each.position, each.kind, str(each.position), each.value) for each in changes]
        self._evaluator.apply([*fresh, *named], END)
        order = np.argsort(both := np.concatenate((self._since, since)))
        self._since, self._group = both[order], np.concatenate((self._group, group))[order]

    def _matched(
        self, entries: pa.Table, pairs: Records, generations: Generations, shapes: Mapping[int, Known]
    ) -> list[pa.Table]:
        """Program by program."""
        files = generations.files
        programs = files.columns["groups"].data["program"][pairs["group"]]
        found = []
        for program in np.unique(programs).tolist():
            places = np.unique(pairs["event"][programs == program])
            if shapes[program].change.key in self._shapes:
                batch = entries.take(pa.array(places))
                matches = self._evaluator.match(batch, [shapes[program].change.key])
                found.append(self._asked(matches, entries, pairs, files.filled("ended")))
        return found

    def _asked(self, matches: pa.Table, entries: pa.Table, pairs: Records, ended: Records) -> pa.Table:
        """Those of the pairs that were asked for, and of subscriptions that had not ended."""
        position, since = matches["position"].to_numpy(), matches["subscription"].to_numpy()
        place = np.searchsorted(entries["position"].to_numpy(), position)
        group = self._group[np.searchsorted(self._since, since)]
        asked = np.isin(_joined(place, group), _joined(pairs["event"], pairs["group"]))
        return matches.filter(pa.array(asked & (position < _ends(ended, since))))


def _joined(event: np.ndarray, group: np.ndarray) -> Int64:
    joined: Int64 = event.astype(np.int64) << 32 | group.astype(np.int64)
    return joined


def _ends(ended: Records, since: Sequence[int] | np.ndarray) -> Int64:
    """Where subscriptions that were made at these positions ended."""
    found = np.full(len(since), END, np.int64)
    for each in ended[np.isin(ended["since"], since)]:
        found[since == each["since"]] = each["until"]
    return found
