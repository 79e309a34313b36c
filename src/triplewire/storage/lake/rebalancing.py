"""Rebalancing plans splits and merges of zones from loads and samples, and moves rows accordingly.

Overloaded zones are split and underloaded ones merged. A zone that is still not normal has no room to be split or no
neighbour to be merged with: the smallest part of the space around it that could be even becomes one zone and is split
again. Every step is bounded by the number of zones or makes the loads more even, so that planning ends; a load on one
point stays.

Each move is one commit: files of the old zones become files of the new ones, and the new layout holds from there on. A
crash leaves the lake as it was before or after a move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa

from triplewire.sparql import to_sql
from triplewire.storage.lake.balance import BalanceSettings, LoadVerdict, ZoneLoad, estimate_loads, judge_load
from triplewire.storage.lake.data_files import connect_duckdb, parquet_relation
from triplewire.storage.lake.keys import KEYED, QuadPoint, row_points
from triplewire.storage.lake.maintenance import FileRewrite, MaintenanceContext, count_quads, group_by_zone
from triplewire.storage.lake.ports import DataFile, Snapshot, TableChange
from triplewire.storage.lake.splits import (
    DIMENSION_CHOICES,
    RULES,
    SplitProposal,
    SplitRequest,
    ZoneSample,
    weigh_samples,
)
from triplewire.storage.lake.survey import measure_load
from triplewire.storage.lake.zones import SPACE, TreeCut, Zone, ZoneLayout, ZoneTree, list_zones, zone_expression

SAMPLED_FILES: Final = 8
"""Files of a zone that are looked into to decide where it is cut: they are spread over time, and take some 20 ms."""

ZONE_SAMPLE: Final = 100_000
"""Quads that are looked at to decide where zones are cut: about 60 MB while that lasts, and some seconds."""


@dataclass(frozen=True)
class SplitZone:
    """A zone is cut in two."""

    zone: str
    dimension: str
    bound: str
    made: tuple[str, str]

    def __call__(self, zones: ZoneLayout) -> ZoneLayout:
        return zones.split(self.zone, self.dimension, self.bound)


@dataclass(frozen=True)
class MergeZones:
    """Two zones that make a box become one."""

    zones: tuple[str, str]
    made: str

    def __call__(self, zones: ZoneLayout) -> ZoneLayout:
        return zones.merge(*self.zones)


RebalanceStep: TypeAlias = SplitZone | MergeZones


@dataclass(frozen=True)
class ZoneMove:
    """Zones that go and zones that come, which are the same part of the space: rows of the ones move to the others, and
    no rows of any other zone do."""

    gone: tuple[Zone, ...]
    made: tuple[Zone, ...]


def plan_moves(before: ZoneLayout, steps: Iterable[RebalanceStep]) -> tuple[ZoneMove, ...]:
    """The sum of steps, as independent moves."""
    zones = before
    made_of: dict[str, frozenset[str]] = {}
    for step in steps:
        sources = (step.zone,) if isinstance(step, SplitZone) else step.zones
        roots = frozenset[str]().union(*(made_of.get(each, frozenset({each})) for each in sources))
        names = step.made if isinstance(step, SplitZone) else (step.made,)
        made_of |= dict.fromkeys(names, roots)
        zones = step(zones)
    return tuple(_move(before, zones, group, made_of) for group in _groups(made_of.values()))


def _groups(found: Iterable[frozenset[str]]) -> list[frozenset[str]]:
    """Sets that share something, put together."""
    groups: list[frozenset[str]] = []
    for each in found:
        sharing = [group for group in groups if group & each]
        groups = [*(group for group in groups if group not in sharing), each.union(*sharing)]
    return groups


def _move(before: ZoneLayout, after: ZoneLayout, group: frozenset[str], made_of: dict[str, frozenset[str]]) -> ZoneMove:
    gone = tuple(zone for zone in before.zones if zone.id in group)
    return ZoneMove(gone, tuple(zone for zone in after.zones if made_of.get(zone.id, frozenset()) & group))


_ODD = ("overloaded", "underloaded")
_BETTER = 0.95
"""A part is made again only if that takes a twentieth of its unevenness away: it moves all of its rows."""


@dataclass(frozen=True)
class RebalancePlan:
    """The map that is to be, the steps to it, and which rows they move."""

    before: ZoneLayout
    after: ZoneLayout
    steps: tuple[RebalanceStep, ...]

    @cached_property
    def moves(self) -> tuple[ZoneMove, ...]:
        return plan_moves(self.before, self.steps)


def plan_rebalance(
    zones: ZoneLayout,
    loads: Mapping[str, ZoneLoad],
    samples: Mapping[str, Sequence[QuadPoint]],
    settings: BalanceSettings,
) -> RebalancePlan:
    """How zones are to be balanced. `samples` has points of zones in the order of the map, as many or few as there
    are; zones without load or sample may be left out."""
    measure = settings.criteria[0].of
    known = {zone.id: loads.get(zone.id, ZoneLoad()) for zone in zones.zones}
    found, everything = weigh_samples(samples, {name: measure(load) for name, load in known.items()})
    state = _PlannedLayout(zones, known, found)
    planner = _Planner(settings, estimate_loads(known.values(), settings), everything)
    for phase in (planner.split, planner.merge, planner.remake):
        state = phase(state)
    return RebalancePlan(zones, state.zones, state.steps)


@dataclass(frozen=True, eq=False)
class _PlannedLayout:
    """A map with what is thought to be in its zones, and the steps that led there."""

    zones: ZoneLayout
    loads: Mapping[str, ZoneLoad]
    samples: Mapping[str, ZoneSample]
    steps: tuple[RebalanceStep, ...] = field(default=())

    def split(self, zone: str, at: SplitProposal) -> _PlannedLayout:
        zones = self.zones.split(zone, at.dimension, at.bound)
        made = (zones.zones[-2].id, zones.zones[-1].id)
        parts = self.samples[zone].parted(at.dimension, at.bound)
        whole = self.samples[zone].weight
        loads = [self.loads[zone] * (part.weight / whole if whole else 0.5) for part in parts]
        return self._with(
            zones,
            [zone],
            dict(zip(made, zip(loads, parts, strict=True), strict=True)),
            SplitZone(zone, at.dimension, at.bound, made),
        )

    def merge(self, zone: str, other: str) -> _PlannedLayout:
        zones = self.zones.merge(zone, other)
        made = zones.zones[-1].id
        found = (self.loads[zone] + self.loads[other], self.samples[zone] + self.samples[other])
        return self._with(zones, [zone, other], {made: found}, MergeZones((zone, other), made))

    def _with(
        self,
        zones: ZoneLayout,
        gone: Sequence[str],
        made: Mapping[str, tuple[ZoneLoad, ZoneSample]],
        step: RebalanceStep,
    ) -> _PlannedLayout:
        loads = {name: load for name, load in self.loads.items() if name not in gone}
        samples = {name: sample for name, sample in self.samples.items() if name not in gone}
        loads |= {name: load for name, (load, _) in made.items()}
        samples |= {name: sample for name, (_, sample) in made.items()}
        return _PlannedLayout(zones, loads, samples, (*self.steps, step))


@dataclass(frozen=True, eq=False)
class _Planner:
    settings: BalanceSettings
    estimates: Sequence[float]
    everything: ZoneSample

    def split(self, state: _PlannedLayout) -> _PlannedLayout:
        """The most overloaded zone, as long as there is one and room for another."""
        done: set[str] = set()
        while len(state.zones.zones) < self.settings.zones and (zone := self._heaviest(state, done)):
            done.add(zone)
            number = self._judged(state.loads[zone]).criterion
            at = self._proposal(state, state.zones[zone], self._parts(state.loads[zone], number))
            following = state.split(zone, at) if at else state
            if not self.settings.merges or self._better([zone], state, following):
                state = following
        return state

    def merge(self, state: _PlannedLayout) -> _PlannedLayout:
        """The most underloaded zone with the neighbour that has the least, if that is not too much for one."""
        done: set[str] = set()
        while self.settings.merges and (zone := self._first(state, done, ("underloaded",), lambda each: each.ratio)):
            done.add(zone)
            near = [other.id for other in state.zones.zones if state.zones[zone].box.joined(other.box)]
            joined = {other: state.loads[zone] + state.loads[other] for other in near}
            fit = [other for other in near if self._judged(joined[other]).state != "overloaded"]
            if fit:
                state = state.merge(zone, min(fit, key=lambda other: self.settings.criteria[0].of(joined[other])))
        return state

    def remake(self, state: _PlannedLayout) -> _PlannedLayout:
        """The smallest part around a zone that is not normal that can be made even."""
        done: set[str] = set()
        while self.settings.merges and (zone := self._first(state, done, _ODD, lambda each: -abs(each.ratio - 1))):
            done.add(zone)
            parts = (self._remade(state, node) for node in _ancestors(state.zones.tree, zone))
            state = next((each for each in parts if each), state)
        return state

    def _remade(self, state: _PlannedLayout, node: ZoneTree) -> _PlannedLayout | None:
        """With the zones of a node of the tree made again; None if that is not better."""
        names = list_zones(node)
        load, estimate = sum((state.loads[name] for name in names), ZoneLoad()), self.estimates[0]
        if not estimate:
            return None
        criterion = self.settings.criteria[0]
        room = self.settings.zones - len(state.zones.zones)
        parts = max(1, min(round(criterion.of(load) / estimate), len(names) + room))
        if not criterion.under * estimate <= criterion.of(load) / parts < criterion.over * estimate:
            return None
        try:
            merged, zone = _collapse(state, node)
        except ValueError:
            return None
        made = self._built(merged, zone, parts)
        return made if self._better(names, state, made) else None

    def _built(self, state: _PlannedLayout, zone: str, parts: int) -> _PlannedLayout:
        """With a zone split into so many, or as many as can be."""
        if parts < 2 or not (at := self._proposal(state, state.zones[zone], parts)):
            return state
        state = state.split(zone, at)
        low, high = state.zones.zones[-2].id, state.zones.zones[-1].id
        whole = state.samples[low].weight + state.samples[high].weight
        under = min(max(round(parts * state.samples[low].weight / whole), 1), parts - 1)
        return self._built(self._built(state, low, under), high, parts - under)

    def _proposal(self, state: _PlannedLayout, zone: Zone, parts: int) -> SplitProposal | None:
        sample = state.samples[zone.id]
        if sample.is_point or state.loads[zone.id].quads < self.settings.smallest:
            return None
        wish = SplitRequest(zone, sample, self.everything, parts, self.settings.slack, self.settings.space)
        return DIMENSION_CHOICES[self.settings.dimensions](wish, RULES[self.settings.cut])

    def _parts(self, load: ZoneLoad, criterion: int) -> int:
        estimate = self.estimates[criterion]
        return max(2, round(self.settings.criteria[criterion].of(load) / estimate)) if estimate else 2

    def _better(self, names: Sequence[str], before: _PlannedLayout, after: _PlannedLayout) -> bool:
        """Are loads more even after some zones made way for others? A zone that is missing counts as empty."""
        criterion, estimate = self.settings.criteria[0], self.estimates[0]
        made = after.zones.zones[len(before.zones.zones) - len(names) :]
        size = max(len(names), len(made))

        def uneven(loads: Sequence[ZoneLoad]) -> float:
            missing = (size - len(loads)) * estimate**2
            return missing + sum((criterion.of(load) - estimate) ** 2 for load in loads)

        old, new = [before.loads[name] for name in names], [after.loads[zone.id] for zone in made]
        return uneven(new) < _BETTER * uneven(old)

    def _judged(self, load: ZoneLoad) -> LoadVerdict:
        return judge_load(load, self.estimates, self.settings.criteria)

    def _heaviest(self, state: _PlannedLayout, done: set[str]) -> str | None:
        if self.settings.strategy == "static":
            rest = [name for name in state.loads if name not in done]
            return max(rest, key=lambda name: self.settings.criteria[0].of(state.loads[name]), default=None)
        return self._first(state, done, ("overloaded",), lambda each: -each.ratio)

    def _first(
        self, state: _PlannedLayout, done: set[str], wanted: Sequence[str], order: Callable[[LoadVerdict], float]
    ) -> str | None:
        """The zone in a wanted state that comes first by the priority of criteria and then by some order."""
        found = {name: self._judged(load) for name, load in state.loads.items() if name not in done}
        fit = [name for name, each in found.items() if each.state in wanted]
        return min(fit, key=lambda name: (found[name].criterion, order(found[name])), default=None)


def _ancestors(tree: ZoneTree, zone: str) -> list[ZoneTree]:
    """The nodes that a zone lies under, the lowest first."""
    if isinstance(tree, str) or zone not in list_zones(tree):
        return []
    return [*(_ancestors(tree.low, zone) or _ancestors(tree.high, zone)), tree]


def _collapse(state: _PlannedLayout, node: ZoneTree) -> tuple[_PlannedLayout, str]:
    """With one zone for all of a node. Raises ValueError where zones lie across its cuts."""
    if isinstance(node, str):
        return state, node
    assert isinstance(node, TreeCut)
    state, low = _collapse(state, node.low)
    state, high = _collapse(state, node.high)
    state = state.merge(low, high)
    return state, state.zones.zones[-1].id


ReadCounts = Mapping[str, float]
"""How often zones were read."""


def rebalance(
    context: MaintenanceContext, settings: BalanceSettings, reads: ReadCounts | None = None, *, reorder: bool = False
) -> RebalancePlan:
    """Split and merge zones until their load is even; what was done. The order of terms stays that of the map, unless
    there is no map yet or it is to be changed, which moves everything."""
    snapshot = context.lake.files()
    zones, loads = context.zones(snapshot), measure_zones(snapshot, reads or {})
    if zones.order != settings.transformation and (reorder or snapshot.zones < 0):
        return _reorder(context, snapshot, settings)
    if is_balanced(loads, zones, settings):
        return RebalancePlan(zones, zones, ())
    made = plan_rebalance(zones, loads, sample_zones(context, snapshot, zones), settings)
    for move in made.moves:
        _relocate(context, move, zones.order)
    return made


def _reorder(context: MaintenanceContext, snapshot: Snapshot, settings: BalanceSettings) -> RebalancePlan:
    """Everything moves at once: boxes of one order mean nothing in another."""
    zones = context.zones(snapshot)
    whole = ZoneLayout((Zone(zones.unused, SPACE),), settings.transformation)
    loads = sum(measure_zones(snapshot, {}).values(), ZoneLoad())
    seen = [point for its in sample_zones(context, snapshot, whole).values() for point in its]
    made = plan_rebalance(whole, {zones.unused: loads}, {zones.unused: seen}, settings)
    _relocate(context, ZoneMove(zones.zones, made.after.zones), settings.transformation)
    return RebalancePlan(zones, made.after, made.steps)


def is_balanced(loads: Mapping[str, ZoneLoad], zones: ZoneLayout, settings: BalanceSettings) -> bool:
    """Is there nothing to do?"""
    known = [loads.get(zone.id, ZoneLoad()) for zone in zones.zones]
    if settings.strategy == "static":
        return len(known) >= settings.zones
    wanted = estimate_loads(known, settings)
    return all(judge_load(each, wanted, settings.criteria).state == "normal" for each in known)


def measure_zones(snapshot: Snapshot, reads: ReadCounts) -> dict[str, ZoneLoad]:
    """By what the table tells of its files."""
    return {zone: measure_load(files, reads.get(zone, 0.0)) for zone, files in group_by_zone(snapshot).items()}


@dataclass(frozen=True)
class _SampledFiles:
    """Some files of a zone, and how many of their rows are looked at."""

    zone: str
    files: tuple[str, ...]
    rows: int


def sample_zones(context: MaintenanceContext, snapshot: Snapshot, zones: ZoneLayout) -> dict[str, list[QuadPoint]]:
    """Points of each zone, in the order of the map, taken from files that are spread over time."""
    total = max(1, count_quads(snapshot.files))
    looks = [
        _SampledFiles(zone, _choose_spread(files), max(1, ZONE_SAMPLE * count_quads(files) // total))
        for zone, files in group_by_zone(snapshot).items()
    ]
    found = context.run(partial(_read_points, context.table), looks) if looks else []
    return {zone: [zones.placed(each) for each in its] for zone, its in found}


def _choose_spread(files: Sequence[DataFile]) -> tuple[str, ...]:
    step = max(1, len(files) // SAMPLED_FILES)
    return tuple(each.path for each in files[::step])


def _read_points(table: Path, look: _SampledFiles) -> Iterator[tuple[str, list[QuadPoint]]]:
    with connect_duckdb() as duck:
        query = f"SELECT {', '.join(KEYED)} FROM {parquet_relation(str(table / each) for each in look.files)}"
        # Always the same rows, so that two looks at the same files decide the same.
        rows = pa.table(duck.sql(f"{query} USING SAMPLE reservoir({look.rows} ROWS) REPEATABLE (1)"))
    yield look.zone, row_points(rows)


def _relocate(context: MaintenanceContext, move: ZoneMove, order: str) -> None:
    """Rows of the zones that go into those that come."""
    snapshot = context.lake.files()
    gone = {zone.id for zone in move.gone}
    zones = context.zones(snapshot)
    after = ZoneLayout((*(each for each in zones.zones if each.id not in gone), *move.made), order)
    files = tuple(each for each in snapshot.files if each.zone in gone)
    made = context.rewrite(
        "balancing zones", [*_rewrites(files, after, move, context.file_rows(snapshot))], count_quads(files)
    )
    context.lake.replace(TableChange(files, made, zones=context.maps.write(after)))


def _rewrites(files: Sequence[DataFile], after: ZoneLayout, move: ZoneMove, rows: int) -> Iterator[FileRewrite]:
    """Files that lie side by side in time go together, as many as make whole files again."""
    assigned = to_sql(zone_expression(after), "duckdb")
    names = tuple(each.id for each in move.made)
    together: list[DataFile] = []
    for number, each in enumerate(files, 1):
        together.append(each)
        if count_quads(together) >= rows * len(names) or number == len(files):
            yield FileRewrite(tuple(file.path for file in together), rows, names, assigned)
            together = []
