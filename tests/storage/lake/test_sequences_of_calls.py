"""Histories: any sequence of inserts, splits, merges, compactions and balancing, in a lake of plain lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.storage.lake.layouts import ORDERS, QUADS, STEPS, Step, taken
from tests.storage.lake.terms import Quad, place
from triplewire.storage.lake.balance import BalanceSettings, ZoneLoad, parse_criteria
from triplewire.storage.lake.keys import QuadPoint
from triplewire.storage.lake.rebalancing import plan_rebalance
from triplewire.storage.lake.zones import ZoneLayout

BALANCE = BalanceSettings(zones=6, criteria=parse_criteria("quads:1.2:0.8"), smallest=2)


@dataclass
class Lists:
    """A lake whose files are lists of quads, each of a zone or of none yet."""

    zones: ZoneLayout
    files: list[tuple[str | None, list[Quad]]] = field(default_factory=list)

    def insert(self, quads: Sequence[Quad]) -> None:
        self.files.append((None, [*quads]))

    def compact(self) -> None:
        self._rewrite({None})

    def step(self, step: Step) -> None:
        self._follow(taken(self.zones, step))

    def balance(self) -> None:
        samples: dict[str, list[QuadPoint]] = {}
        for zone, quads in self.files:
            if zone is not None:
                samples.setdefault(zone, []).extend(self.zones.placed(place(quad)) for quad in quads)
        loads = {zone: ZoneLoad(len(points)) for zone, points in samples.items()}
        found = plan_rebalance(self.zones, loads, samples, BALANCE)
        for move in found.moves:
            assert {zone.id for zone in move.gone} <= {zone.id for zone in self.zones.zones}
        self._follow(found.after)

    def held(self) -> Counter[Quad]:
        return Counter(quad for _, quads in self.files for quad in quads)

    def _follow(self, zones: ZoneLayout) -> None:
        gone = {zone.id for zone in self.zones.zones} - {zone.id for zone in zones.zones}
        self.zones = zones
        self._rewrite(gone)

    def _rewrite(self, gone: set[str] | set[None]) -> None:
        """The files of some zones as one for each zone that their quads lie in now."""
        made: dict[str, list[Quad]] = {}
        for quad in (quad for zone, quads in self.files if zone in gone for quad in quads):
            made.setdefault(self.zones.locate(self.zones.placed(place(quad))), []).append(quad)
        self.files = [*(each for each in self.files if each[0] not in gone), *made.items()]


@given(st.lists(st.one_of(QUADS, STEPS, st.sampled_from(["compact", "compact", "balance"])), max_size=10), ORDERS)
@settings(max_examples=100, deadline=None)
def test_zones_tile_and_hold_every_quad_once(history: list[list[Quad] | list[Step] | str], order: str) -> None:
    lake, said = Lists(ZoneLayout(order=order)), Counter[Quad]()
    for each in history:
        said += done(lake, each)
        ZoneLayout.from_table(lake.zones.to_table())
        assert lake.held() == said
        for zone, quads in lake.files:
            for quad in quads if zone else ():
                holding = [each.id for each in lake.zones.zones if lake.zones.placed(place(quad)) in each.box]
                assert holding == [zone]


def done(lake: Lists, each: list[Quad] | list[Step] | str) -> Counter[Quad]:
    """Do it, and give the quads that came in."""
    if isinstance(each, str):
        lake.compact() if each == "compact" else lake.balance()
        return Counter()
    quads = [quad for quad in each if quad[0] not in ("split", "merge")]
    for step in each:
        if step[0] in ("split", "merge"):
            lake.step(step)  # type: ignore[arg-type]
    if quads:
        lake.insert(quads)  # type: ignore[arg-type]
    return Counter(quads)  # type: ignore[arg-type]
