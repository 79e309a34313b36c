"""Plans: from the load of zones and samples of them to the steps that make the load even.

First what is overloaded is split and what is underloaded is merged, each zone by itself. What is still not normal then
has no room to be split, or no neighbour to be merged with: the smallest part of the space around it that could be
even is made one zone, and split again. Every step is bounded by the number of zones or makes the loads more even, so
that a plan ends; a load that lies on one point stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from triplewire.lake.balance import Balance, estimates
from triplewire.lake.criteria import Load, Verdict, verdict
from triplewire.lake.cuts import DIMENSION_CHOICES, RULES, Proposal, Wish
from triplewire.lake.keys import Point
from triplewire.lake.samples import Sample, weighed
from triplewire.lake.steps import Merge, Move, Split, Step, moves
from triplewire.lake.tilings import Cut, Tree, leaves_of
from triplewire.lake.zones import Zone, ZoneMap

_BETTER = 0.95
"""A part is made again only if that takes a twentieth of its unevenness away: it moves all of its rows."""


@dataclass(frozen=True)
class Plan:
    """The map that is to be, the steps to it, and which rows they move."""

    before: ZoneMap
    after: ZoneMap
    steps: tuple[Step, ...]

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        return moves(self.before, self.steps)


def plan(zones: ZoneMap, loads: Mapping[str, Load], samples: Mapping[str, Sequence[Point]], settings: Balance) -> Plan:
    """How zones are to be balanced. `samples` has points of zones in the order of the map, as many or few as there
    are; zones without load or sample may be left out."""
    measure = settings.criteria[0].of
    known = {zone.id: loads.get(zone.id, Load()) for zone in zones.zones}
    found, everything = weighed(samples, {name: measure(load) for name, load in known.items()})
    state = _State(zones, known, found)
    planner = _Planner(settings, estimates(known.values(), settings), everything)
    for phase in (planner.split, planner.merge, planner.remake):
        state = phase(state)
    return Plan(zones, state.zones, state.steps)


@dataclass(frozen=True, eq=False)
class _State:
    """A map with what is thought to be in its zones, and the steps that led there."""

    zones: ZoneMap
    loads: Mapping[str, Load]
    samples: Mapping[str, Sample]
    steps: tuple[Step, ...] = field(default=())

    def split(self, zone: str, at: Proposal) -> _State:
        zones = self.zones.split(zone, at.dimension, at.bound)
        made = (zones.zones[-2].id, zones.zones[-1].id)
        parts = self.samples[zone].parted(at.dimension, at.bound)
        whole = self.samples[zone].weight
        loads = [self.loads[zone] * (part.weight / whole if whole else 0.5) for part in parts]
        return self._with(
            zones, [zone], dict(zip(made, zip(loads, parts, strict=True), strict=True)), Split(zone, *_at(at), made)
        )

    def merge(self, zone: str, other: str) -> _State:
        zones = self.zones.merge(zone, other)
        made = zones.zones[-1].id
        found = (self.loads[zone] + self.loads[other], self.samples[zone] + self.samples[other])
        return self._with(zones, [zone, other], {made: found}, Merge((zone, other), made))

    def _with(self, zones: ZoneMap, gone: Sequence[str], made: Mapping[str, tuple[Load, Sample]], step: Step) -> _State:
        loads = {name: load for name, load in self.loads.items() if name not in gone}
        samples = {name: sample for name, sample in self.samples.items() if name not in gone}
        loads |= {name: load for name, (load, _) in made.items()}
        samples |= {name: sample for name, (_, sample) in made.items()}
        return _State(zones, loads, samples, (*self.steps, step))


def _at(proposal: Proposal) -> tuple[str, str]:
    return proposal.dimension, proposal.bound


@dataclass(frozen=True, eq=False)
class _Planner:
    settings: Balance
    estimates: Sequence[float]
    everything: Sample

    def split(self, state: _State) -> _State:
        """The most overloaded zone, as long as there is one and room for another."""
        done: set[str] = set()
        while len(state.zones.zones) < self.settings.zones and (zone := self._heaviest(state, done)):
            done.add(zone)
            number = self._verdict(state, zone).criterion
            at = self._proposal(state, state.zones[zone], self._parts(state.loads[zone], number))
            following = state.split(zone, at) if at else state
            if not self.settings.merges or self._better([zone], state, following):
                state = following
        return state

    def merge(self, state: _State) -> _State:
        """The most underloaded zone with the neighbour that has the least, if that is not too much for one."""
        done: set[str] = set()
        while self.settings.merges and (zone := self._lightest(state, done)):
            done.add(zone)
            near = [other.id for other in state.zones.zones if state.zones[zone].box.joined(other.box)]
            joined = {other: state.loads[zone] + state.loads[other] for other in near}
            fit = [other for other in near if self._judged(joined[other]).state != "overloaded"]
            if fit:
                state = state.merge(zone, min(fit, key=lambda other: self.settings.criteria[0].of(joined[other])))
        return state

    def remake(self, state: _State) -> _State:
        """The smallest part around a zone that is not normal that can be made even."""
        done: set[str] = set()
        while self.settings.merges and (zone := self._oddest(state, done)):
            done.add(zone)
            parts = (self._remade(state, node) for node in _around(state.zones.tree, zone))
            state = next((each for each in parts if each), state)
        return state

    def _remade(self, state: _State, node: Tree) -> _State | None:
        """With the zones of a node of the tree made again; None if that is not better."""
        names = leaves_of(node)
        load, estimate = sum((state.loads[name] for name in names), Load()), self.estimates[0]
        if not estimate:
            return None
        criterion = self.settings.criteria[0]
        room = self.settings.zones - len(state.zones.zones)
        parts = max(1, min(round(criterion.of(load) / estimate), len(names) + room))
        if not criterion.under * estimate <= criterion.of(load) / parts < criterion.over * estimate:
            return None
        try:
            merged, zone = _collapsed(state, node)
        except ValueError:
            return None
        made = self._built(merged, zone, parts)
        return made if self._better(names, state, made) else None

    def _built(self, state: _State, zone: str, parts: int) -> _State:
        """With a zone split into so many, or as many as can be."""
        if parts < 2 or not (at := self._proposal(state, state.zones[zone], parts)):
            return state
        state = state.split(zone, at)
        low, high = state.zones.zones[-2].id, state.zones.zones[-1].id
        whole = state.samples[low].weight + state.samples[high].weight
        under = min(max(round(parts * state.samples[low].weight / whole), 1), parts - 1)
        return self._built(self._built(state, low, under), high, parts - under)

    def _proposal(self, state: _State, zone: Zone, parts: int) -> Proposal | None:
        sample = state.samples[zone.id]
        if sample.is_point or state.loads[zone.id].quads < self.settings.smallest:
            return None
        wish = Wish(zone, sample, self.everything, parts, self.settings.slack, self.settings.space)
        return DIMENSION_CHOICES[self.settings.dimensions](wish, RULES[self.settings.cut])

    def _parts(self, load: Load, criterion: int) -> int:
        estimate = self.estimates[criterion]
        return max(2, round(self.settings.criteria[criterion].of(load) / estimate)) if estimate else 2

    def _better(self, names: Sequence[str], before: _State, after: _State) -> bool:
        """Are loads more even after some zones made way for others? A zone that is missing counts as empty."""
        criterion, estimate = self.settings.criteria[0], self.estimates[0]
        made = after.zones.zones[len(before.zones.zones) - len(names) :]
        size = max(len(names), len(made))

        def uneven(loads: Sequence[Load]) -> float:
            missing = (size - len(loads)) * estimate**2
            return missing + sum((criterion.of(load) - estimate) ** 2 for load in loads)

        old, new = [before.loads[name] for name in names], [after.loads[zone.id] for zone in made]
        return uneven(new) < _BETTER * uneven(old)

    def _verdict(self, state: _State, zone: str) -> Verdict:
        return self._judged(state.loads[zone])

    def _judged(self, load: Load) -> Verdict:
        return verdict(load, self.estimates, self.settings.criteria)

    def _heaviest(self, state: _State, done: set[str]) -> str | None:
        if self.settings.strategy == "static":
            rest = [name for name in state.loads if name not in done]
            return max(rest, key=lambda name: self.settings.criteria[0].of(state.loads[name]), default=None)
        return self._first(state, done, lambda each: each.state == "overloaded", lambda each: -each.ratio)

    def _lightest(self, state: _State, done: set[str]) -> str | None:
        return self._first(state, done, lambda each: each.state == "underloaded", lambda each: each.ratio)

    def _oddest(self, state: _State, done: set[str]) -> str | None:
        return self._first(state, done, lambda each: each.state != "normal", lambda each: -abs(each.ratio - 1))

    def _first(
        self, state: _State, done: set[str], wanted: Callable[[Verdict], bool], order: Callable[[Verdict], float]
    ) -> str | None:
        """The zone that comes first by the priority of criteria and then by some order."""
        found = {name: self._judged(load) for name, load in state.loads.items() if name not in done}
        fit = [name for name, each in found.items() if wanted(each)]
        return min(fit, key=lambda name: (found[name].criterion, order(found[name])), default=None)


def _around(tree: Tree, zone: str) -> list[Tree]:
    """The nodes that a zone lies under, the lowest first."""
    if isinstance(tree, str) or zone not in leaves_of(tree):
        return []
    return [*(_around(tree.low, zone) or _around(tree.high, zone)), tree]


def _collapsed(state: _State, node: Tree) -> tuple[_State, str]:
    """With one zone for all of a node. Raises ValueError where zones lie across its cuts."""
    if isinstance(node, str):
        return state, node
    assert isinstance(node, Cut)
    state, low = _collapsed(state, node.low)
    state, high = _collapsed(state, node.high)
    state = state.merge(low, high)
    return state, state.zones.zones[-1].id
