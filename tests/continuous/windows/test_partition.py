"""Places of windows, against a recomputation window by window with an engine that we did not write."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.continuous.windows.brute import Brute
from tests.continuous.windows.worlds import EX, World, entries, told, worlds
from triplewire.continuous.windows.partition import WindowPartition
from triplewire.model import END, Erasure, ErasureScope
from triplewire.model.erasure import blank_erased


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_each_window_tells_what_its_events_answer(world: World) -> None:
    compare(world)


@settings(max_examples=40, deadline=None)
@given(worlds(revised=True))
def test_what_comes_late_is_told_again_as_if_it_had_been_there(world: World) -> None:
    compare(world)


def compare(world: World) -> None:
    place, (query,) = WindowPartition(), world.queries
    brute, known = Brute(query), False
    for number, (turn, events) in enumerate(world.turns):
        changes = world.learned(number)
        known = known or bool(changes)
        place.apply_changes(changes)
        found = told(place.process(entries(events), turn))
        if not known:
            brute.wait(turn)
            assert found == []
            continue
        assert sorted(found, key=repr) == sorted(brute.take(events, turn), key=repr), number
        assert place.figures.dropped[query.id] == brute.dropped
    place.close()


@settings(max_examples=40, deadline=None)
@given(worlds(queries=3), st.data())
def test_a_place_that_is_made_again_goes_on_as_if_nothing_had_been(world: World, data: st.DataObject) -> None:
    place, other = WindowPartition(), WindowPartition()
    cut = data.draw(st.integers(0, len(world.turns) - 1), "cut")
    told_again = data.draw(st.integers(cut, len(world.turns) - 1), "told again from")
    for number, (turn, events) in enumerate(world.turns):
        place.apply_changes(world.learned(number))
        found = place.process(entries(events), turn)
        if number == cut:
            other.restore(stored(place.snapshot()), turn)
        elif number > cut:
            other.apply_changes(world.learned(number))
            if number <= told_again:
                other.restore(entries(events), turn)
            else:
                assert other.process(entries(events), turn).equals(found)
    assert other.figures.held == place.figures.held
    assert other.figures.dropped == place.figures.dropped
    assert other.due(turn.now) == place.due(turn.now)
    assert other.snapshot().equals(place.snapshot(), check_metadata=True)
    place.close()
    other.close()


@settings(max_examples=40, deadline=None)
@given(worlds(queries=3), st.data())
def test_what_is_erased_from_what_is_kept_is_as_if_it_had_said_nothing(world: World, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(world.turns) - 1), "cut")
    # Of several triples, windows that count triples have counted each.
    published = [each.position for _, events in world.turns[: cut + 1] for each in events if len(each.triples) == 1]
    gone = data.draw(st.sampled_from([0, *published]), "gone")
    erasures = [Erasure("x", ErasureScope.EVENT, f"{EX}e{gone}", END)]
    place, silent, other = WindowPartition(), WindowPartition(), WindowPartition()
    for number, (turn, events) in enumerate(world.turns):
        for each in (place, silent):
            each.apply_changes(world.learned(number))
        place.process(entries(events), turn)
        expected = silent.process(blank_erased(entries(events), erasures), turn)
        if number == cut:
            other.restore(stored(blank_erased(place.snapshot(), erasures)), turn)
        elif number > cut:
            other.apply_changes(world.learned(number))
            assert other.process(entries(events), turn).equals(expected)
    assert f"'{EX}e{gone}'" not in str(other.snapshot().to_pydict())
    for each in (place, silent, other):
        each.close()


def stored(kept: pa.Table) -> pa.Table:
    """As it comes back from a file."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, kept.schema) as stream:
        stream.write_table(kept)
    return pa.ipc.open_stream(sink.getvalue()).read_all()
