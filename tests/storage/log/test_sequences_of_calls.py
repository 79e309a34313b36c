"""Any history of appends, puts, trims and reads gives what a plain list would give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import END, Event
from triplewire.storage.log.ports import LogRetention, Publication
from triplewire.testing import TWIN_KINDS, Twin, open_twin

HOUR = 3_600_000_000
Step: TypeAlias = tuple[Any, ...]

texts = st.text("aü€", max_size=6)
publications = st.lists(
    st.builds(Publication, st.sampled_from("st"), st.lists(st.builds(Event, st.just("urn:e"), texts)))
)
named = st.tuples(
    st.sampled_from("ab"), st.sampled_from("xy"), st.none() | st.dictionaries(st.text(), st.integers(0, 9), max_size=2)
)
limits = st.none() | st.integers(0, 40)
steps = st.one_of(
    st.tuples(st.just("append"), publications),
    st.tuples(st.just("put"), st.lists(named, max_size=3)),
    st.tuples(st.just("trim"), st.none() | st.integers(0, 5), limits, st.integers(0, 30)),
    st.tuples(st.just("read"), st.integers(0, 30), st.integers(0, 30), st.integers(0, 10)),
    st.tuples(st.just("jump"), st.integers(-3, 5)),
)


@dataclass
class Model:
    """Lists and a counter: slow, and plain enough to be believed."""

    head: int = 0
    now: int = 0
    entries: list[tuple[int, str, str, int]] = field(default_factory=list)
    changes: list[tuple[int, str, str, Any]] = field(default_factory=list)
    gone: dict[str, int] = field(default_factory=dict)

    def append(self, publications: list[Publication]) -> list[int]:
        flat = [(str(publication.stream), event.text) for publication in publications for event in publication.events]
        taken = [self.head + 1 + number for number in range(len(flat))]
        self.entries += [(at, stream, text, self.now) for at, (stream, text) in zip(taken, flat, strict=True)]
        self.head += len(flat)
        return taken

    def put(self, things: list[tuple[str, str, Any]]) -> list[int]:
        taken = [self.head + 1 + number for number in range(len(things))]
        self.changes += [(at, *thing) for at, thing in zip(taken, things, strict=True)]
        self.head += len(things)
        return taken

    def trim(self, age: int | None, size: int | None, before: int) -> int:
        dropped = 0
        while self.entries and self.entries[0][0] < before and self._oldest_goes(age, size):
            position, stream, _, _ = self.entries.pop(0)
            self.gone[stream] = position
            dropped += 1
        return dropped

    def _oldest_goes(self, age: int | None, size: int | None) -> bool:
        held = sum(len(text.encode()) for _, _, text, _ in self.entries)
        too_old = age is not None and self.entries[0][3] < self.now - age * HOUR
        return too_old or (size is not None and held > size)

    def read(self, after: int, upto: int, limit: int) -> list[tuple[int, str, str, int]]:
        return [entry for entry in self.entries if after < entry[0] <= upto][:limit]


def play(model: Model, stores: Twin, step: Step) -> None:
    match step:
        case ("append", given_publications):
            taken = stores.log.append(given_publications)
            assert [at for each in taken for at in each] == model.append(given_publications)
        case ("put", things):
            assert stores.registry.put(things) == model.put(things)
        case ("trim", age, size, before):
            retention = LogRetention(None if age is None else age * 3600.0, size)
            assert stores.log.trim(retention, before) == model.trim(age, size, before)
        case ("read", after, upto, limit):
            assert read(stores, after, upto, limit) == model.read(after, upto, limit)
        case ("jump", hours):
            stores.clock.jump(hours * HOUR)
            model.now = stores.clock.now()
        case _:
            pytest.fail(f"no such step: {step}")


def read(stores: Twin, after: int, upto: int, limit: int) -> list[tuple[int, str, str, int]]:
    table = stores.log.read(after, upto, limit).select(["position", "stream", "text", "received"])
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("kind", TWIN_KINDS)
@settings(max_examples=60, deadline=None)
@given(history=st.lists(steps, max_size=12))
def test_every_twin_behaves_like_the_model(kind: str, history: list[Step]) -> None:
    with open_twin(kind) as stores:
        model = Model(now=stores.clock.now())
        for step in history:
            play(model, stores, step)
        assert stores.log.head() == model.head
        assert {each: stores.log.floor(each) for each in "st"} == {each: model.gone.get(each, 0) for each in "st"}
        assert read(stores, 0, END, 1_000) == model.entries
        changes = [(each.position, each.kind, each.key, each.value) for each in stores.registry.changes(0, END)]
        assert changes == model.changes
