"""The log read backwards."""

from __future__ import annotations

import pytest

from triplewire.matching.event_history import find_newest, find_position, read_entry, scan_backwards
from triplewire.model.errors import NotFound
from triplewire.testing import TWIN_KINDS, open_twin, publication


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_batches_come_newest_first_and_miss_nothing(kind: str) -> None:
    with open_twin(kind) as stores:
        (positions,) = stores.log.append([publication(*range(8))])
        batches = scan_backwards(stores.log, positions[0], positions[-1], positions=3)
        read = [batch["position"].to_pylist() for batch in batches]
    assert read == [[6, 7, 8], [3, 4, 5], [2]]


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_a_moment_is_found_among_gaps(kind: str) -> None:
    with open_twin(kind) as stores:
        times = []
        for number in range(12):
            stores.registry.put([("other", str(each), {}) for each in range(number % 4)])
            stores.clock.advance(60)
            stores.log.append([publication(number)])
            times.append((stores.log.head(), stores.clock.now()))
        head = stores.log.head()
        for place, moment in times:
            found = stores.log.read(find_position(stores.log, moment, head), head, 100)["position"].to_pylist()
            assert found == [each for each, _ in times if each >= place]
        assert find_position(stores.log, stores.clock.now() + 1, head) == head


@pytest.mark.parametrize("kind", TWIN_KINDS)
def test_an_event_is_found_by_its_id_or_its_position(kind: str) -> None:
    with open_twin(kind) as stores:
        stores.log.append([publication(7), publication(8), publication(7, stream="again")])
        assert find_newest(stores.log, "http://example.org/event/7")["stream"] == "again"
        assert read_entry(stores.log, 2)["event"] == "http://example.org/event/8"
        with pytest.raises(NotFound, match="event/9"):
            find_newest(stores.log, "http://example.org/event/9")
        with pytest.raises(NotFound):
            read_entry(stores.log, 4)
