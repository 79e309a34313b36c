"""The doubles do what their markers say, so that other tests may rely on them."""

from __future__ import annotations

from threading import Thread

import pytest

from triplewire.model import END
from triplewire.model.errors import StorageFull, Unavailable
from triplewire.testing import Crash, Fault, FaultyLog, GatedLog, event, open_twin, publication


@pytest.mark.parametrize(
    ("fault", "error", "stored"),
    [
        (Fault.FULL, StorageFull, 0),
        (Fault.AWAY, Unavailable, 0),
        (Fault.CRASH_BEFORE, Crash, 0),
        (Fault.CRASH_AFTER, Crash, 1),
    ],
)
def test_the_marker_of_a_call_decides_how_it_ends(fault: Fault, error: type[Exception], stored: int) -> None:
    with open_twin("memory") as stores:
        log = FaultyLog(stores.log, [Fault.NONE, fault])
        log.append([publication(1)])
        with pytest.raises(error):
            log.append([publication(2)])
        assert log.head() == 1 + stored
        assert log.append([publication(3)]) == [range(2 + stored, 3 + stored)]


def test_an_append_waits_at_the_gate() -> None:
    with open_twin("memory") as stores:
        gated = GatedLog(stores.log)
        thread = Thread(target=gated.append, args=([publication(1)],))
        thread.start()
        gated.arrived.wait()
        assert gated.head() == 0
        gated.gate.set()
        thread.join()
        assert gated.read(0, END, 9).num_rows == 1


def test_sample_events_are_told_apart_by_their_number() -> None:
    assert event(1).id != event(2).id
    assert event(1).quads[1].object != event(2).quads[1].object
    assert {quad.graph for quad in event(1).quads} == {f"<{event(1).id}>"}
