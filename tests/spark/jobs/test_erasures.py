"""An erasure is done to the end, whatever dies on the way, and what it leaves behind is nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.storage.lake.traces import traces
from triplewire.continuous.state import StateGenerations
from triplewire.http.resources.erasures import ErasureRequest, Erasures
from triplewire.model import MATCHES, ErasureScope, Event, EventHeaders
from triplewire.model.clock import ManualClock
from triplewire.spark.jobs.maintenance import Eraser
from triplewire.spark.jobs.ports import ErasableStores
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.maintenance import MaintenanceContext, compact, hold_maintenance_lock, run_sequentially
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.lake.zones import ZoneLayoutStore
from triplewire.storage.log.erasure_view import ErasureView
from triplewire.storage.log.ports import Publication
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.outbox import OutboxLane, SqliteOutbox
from triplewire.storage.registry.erasure import ERASING, STEPS, ErasureReceipt, pending_erasures
from triplewire.storage.registry.sqlite import SqliteRegistry
from triplewire.storage.registry.subscriptions import LANE, QUERY, newest_renewal
from triplewire.testing import Crash
from triplewire.testing.samples import EXAMPLE

ANNA, SECRET, SOURCE = f"{EXAMPLE}anna", "Anna Secretperson", "Secretsource"
NAMED = f'<{ANNA}>\t<{EXAMPLE}name>\t"{SECRET}"'
OTHER = f'<{EXAMPLE}bob>\t<{EXAMPLE}name>\t"Bob"'
MEMORY = 10.0


class Broker:
    """The stores of a broker, and its queries done by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, ManualClock()
        self.registry = SqliteRegistry(folder / "log.db", self.clock)
        self.log = SqliteLog(folder / "log.db", self.clock)
        self.outbox = SqliteOutbox(folder / "outbox.db")
        self.kept = StateGenerations(folder / "state")
        self.lake = DeltaLake(folder / "quads")
        self.context = MaintenanceContext(self.lake, folder / "quads", ZoneLayoutStore(folder / "zones"))
        self.erasures = Erasures(self.registry, self.clock)
        self._writer = FileWriter(folder / "quads")

    @property
    def stores(self) -> ErasableStores:
        return ErasableStores(self.registry, self.log, self.outbox, self.kept)

    def eraser(self) -> Eraser:
        return Eraser(self.stores, self.context, self.clock, MEMORY)

    def publish(self, *texts: str, source: str | None = None) -> None:
        count = self.log.head()
        events = [Event(f"urn:event:{count + n}", text, EventHeaders(source=source)) for n, text in enumerate(texts)]
        self.log.append([Publication("test", events)])

    def run(self) -> None:
        """What both queries do with what is new: every event is matched, and its text is in what was computed."""
        head, guarded = self.log.head(), ErasureView(self.log, lambda: pending_erasures(self.registry))
        fresh = guarded.read(self.outbox.head(), head, 1_000)
        rows = [
            {"position": each["position"], "subscription": 7, "terms": [each["text"]]} for each in fresh.to_pylist()
        ]
        self.outbox.write(head, head, pa.Table.from_pylist(rows, schema=MATCHES))
        entries = guarded.read(self.lake.files().position, head, 1_000)
        written = [self._writer.write(entries)] if entries.num_rows else []
        self.lake.commit(CommitBatch("q", head, head), written)

    def close(self) -> None:
        for store in (self.registry, self.log, self.outbox):
            store.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    yield made
    made.close()


def lived(broker: Broker) -> Broker:
    broker.publish(NAMED, f"{NAMED}\n{OTHER}", OTHER, source=SOURCE)
    broker.run()
    compact(broker.context)
    broker.publish(f"{OTHER}\n{NAMED}", OTHER)
    return broker


def ask(broker: Broker, scope: ErasureScope = ErasureScope.SUBJECT, name: str = ANNA) -> ErasureReceipt:
    return broker.erasures.request(ErasureRequest(scope, name))


def settle(broker: Broker, eraser: Eraser) -> None:
    """Until nothing goes on, however long that takes."""
    for _ in range(2):
        broker.run()
        eraser.advance()
        broker.clock.advance(MEMORY)
    assert eraser.advance() == 0


def texts(broker: Broker) -> list[str]:
    found: list[str] = broker.log.read(0, broker.log.head(), 100)["text"].to_pylist()
    return found


def test_a_subject_is_gone_to_the_last_byte_and_the_receipt_says_when(broker: Broker) -> None:
    asked = ask(lived(broker))
    settle(broker, broker.eraser())
    receipt = broker.erasures.find(asked.id)
    assert set(receipt.steps) == set(STEPS)
    assert receipt.completed == max(receipt.steps.values())
    assert (receipt.position, receipt.digest) == (asked.position, asked.digest)
    assert dict(receipt.counts) == {**receipt.counts, "events": 1, "changed": 2, "quads": 3, "matches": 3}
    assert traces(broker.folder, ANNA, SECRET) == []
    assert texts(broker) == [OTHER] * 4
    assert pending_erasures(broker.registry) == []


def test_a_source_goes_and_so_does_its_name(broker: Broker) -> None:
    asked = ask(lived(broker), ErasureScope.SOURCE, SOURCE)
    assert SOURCE not in str(broker.erasures.find(asked.id))
    settle(broker, broker.eraser())
    assert broker.erasures.find(asked.id).completed
    assert traces(broker.folder, SOURCE) == []
    assert texts(broker) == [f"{OTHER}\n{NAMED}", OTHER]


def test_nothing_is_taken_out_before_all_that_was_read_is_written(broker: Broker) -> None:
    """A batch that was read before it was asked for writes it once more."""
    lived(broker)
    before = ErasureView(broker.log, list).read(broker.lake.files().position, broker.log.head(), 100)
    asked, head = ask(broker), before["position"][-1].as_py()
    eraser = broker.eraser()
    eraser.advance()
    assert set(broker.erasures.find(asked.id).steps) == {"hidden"}
    broker.lake.commit(CommitBatch("q", head, head), [FileWriter(broker.folder / "quads").write(before)])
    eraser.advance()
    assert set(broker.erasures.find(asked.id).steps) == {"hidden"}
    settle(broker, eraser)
    assert traces(broker.folder, ANNA, SECRET) == []


def test_the_slow_lane_is_waited_for(broker: Broker) -> None:
    broker.registry.put([(LANE, "shape", {"cost": 1.0})])
    asked, eraser = ask(lived(broker)), broker.eraser()
    broker.run()
    eraser.advance()
    assert set(broker.erasures.find(asked.id).steps) == {"hidden"}
    rows = [{"position": 2, "subscription": 7, "terms": [NAMED]}]
    broker.outbox.write(0, broker.log.head(), pa.Table.from_pylist(rows, schema=MATCHES), OutboxLane.SLOW)
    settle(broker, eraser)
    assert traces(broker.folder, ANNA, SECRET) == []


def test_continuous_queries_are_waited_for_and_forget_what_an_answer_was_put_together_from(broker: Broker) -> None:
    """The answer is told at the last of its pieces, and what is erased may be any of them."""
    broker.registry.put([(QUERY, "q", {"text": "SELECT …", "group": 9})])
    asked, eraser = ask(lived(broker)), broker.eraser()
    broker.run()
    eraser.advance()
    assert set(broker.erasures.find(asked.id).steps) == {"hidden"}
    rows = [
        {"position": 3, "group": 9, "value": 3.0, "terms": ["0", "Bob"]},
        {"position": broker.log.head(), "group": 9, "value": 1.0, "terms": ["0", NAMED]},
    ]
    broker.outbox.write(0, broker.log.head(), pa.Table.from_pylist(rows, schema=MATCHES), OutboxLane.CONTINUOUS)
    (before := broker.kept.directory("run", 0) / "0").mkdir(parents=True)
    (before / "1.arrow").write_text(NAMED)
    broker.run()
    eraser.advance()
    assert "state" not in broker.erasures.find(asked.id).steps
    # What is kept is made anew, and the answers of that batch are written.
    renewal = newest_renewal(broker.registry)
    assert renewal is not None
    late = [{"position": renewal.position, "group": 9, "value": 1.0, "terms": ["0", NAMED]}]
    broker.outbox.write(1, renewal.position, pa.Table.from_pylist(late, schema=MATCHES), OutboxLane.CONTINUOUS)
    eraser.advance()
    assert "state" not in broker.erasures.find(asked.id).steps
    broker.kept.drop_others("run", renewal.position)
    settle(broker, eraser)
    assert newest_renewal(broker.registry) == renewal
    assert traces(broker.folder, ANNA, SECRET) == []


def test_what_is_kept_for_queries_that_have_ended_goes(broker: Broker) -> None:
    asked = ask(lived(broker))
    (kept := broker.kept.directory("run", 7) / "0").mkdir(parents=True)
    (kept / "1.arrow").write_text(NAMED)
    settle(broker, broker.eraser())
    assert "state" in broker.erasures.find(asked.id).steps
    assert traces(broker.folder, ANNA, SECRET) == []


def test_those_who_answer_queries_are_given_their_time(broker: Broker) -> None:
    asked, eraser = ask(lived(broker)), broker.eraser()
    broker.run()
    eraser.advance()
    assert set(STEPS) - set(broker.erasures.find(asked.id).steps) == {"memory", "name"}
    broker.clock.advance(MEMORY - 1)
    assert eraser.advance() == 1
    broker.clock.advance(1)
    eraser.advance()
    assert broker.erasures.find(asked.id).completed == broker.clock.now()


def test_while_another_keeps_house_it_waits(broker: Broker) -> None:
    asked, eraser = ask(lived(broker)), broker.eraser()
    broker.run()
    with hold_maintenance_lock(broker.folder / "quads"):
        eraser.advance()
        assert set(broker.erasures.find(asked.id).steps) == {"hidden"}
    settle(broker, eraser)
    assert broker.erasures.find(asked.id).completed


def test_one_after_the_other_each_takes_its_own(broker: Broker) -> None:
    asked = [
        ask(lived(broker)),
        ask(broker, ErasureScope.EVENT, "urn:event:2"),
        ask(broker, ErasureScope.SOURCE, SOURCE),
    ]
    settle(broker, broker.eraser())
    assert all(broker.erasures.find(each.id).completed for each in asked)
    assert traces(broker.folder, ANNA, SECRET, SOURCE, "urn:event:2") == []
    assert texts(broker) == [OTHER, OTHER]


def test_what_a_crash_left_half_written_goes(broker: Broker) -> None:
    lived(broker)
    quads = broker.folder / "quads"
    file = quads / FileWriter(quads).write(broker.log.read(0, 3, 3)).path
    file.write_bytes(file.read_bytes()[:-9])
    asked, eraser = ask(broker), broker.eraser()
    broker.run()
    eraser.advance()
    assert "history" not in broker.erasures.find(asked.id).steps, "it may still be being written"
    eraser = replace(broker.eraser(), began=2**62)
    settle(broker, eraser)
    assert broker.erasures.find(asked.id).completed
    assert not file.exists()


@dataclass
class Deadly:
    """Stands before a store, and dies at the n-th half of what changes it, counted over all stores: before it, or
    after it and before anyone is told."""

    left: int

    def before(self, store: Any, *names: str) -> Any:  # noqa: ANN401 - whatever the store is
        return _Dying(store, names, self)

    def act(self, work: Callable[..., Any], *given: Any) -> Any:  # noqa: ANN401
        self._half()
        made = work(*given)
        self._half()
        return made

    def _half(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


@dataclass
class _Dying:
    store: Any
    names: tuple[str, ...]
    deadly: Deadly

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self.store, name)
        return (
            (lambda *given, **named: self.deadly.act(partial(found, **named), *given)) if name in self.names else found
        )


@pytest.mark.parametrize("half", [1, 2, 5, 8, 11, 14, 17, 20, 23, 26])
def test_whatever_dies_it_goes_on(broker: Broker, half: int) -> None:
    """At every change of every store, and at every file that is written anew."""
    asked, deadly = ask(lived(broker)), Deadly(half)
    broker.run()
    stores = ErasableStores(
        deadly.before(broker.registry, "put", "redact"),
        deadly.before(broker.log, "erase"),
        deadly.before(broker.outbox, "erase"),
        deadly.before(broker.kept, "clear"),
    )
    house = replace(
        broker.context,
        lake=deadly.before(broker.lake, "replace"),
        run=lambda function, items: run_sequentially(lambda item: deadly.act(lambda: [*function(item)]), items),
    )
    eraser = Eraser(stores, house, broker.clock, memory=0.0)
    with pytest.raises(Crash):
        eraser.advance()
    settle(broker, broker.eraser())
    receipt = broker.erasures.find(asked.id)
    assert receipt.completed
    assert dict(receipt.counts) == {**receipt.counts, "events": 1, "changed": 2, "quads": 3}
    assert traces(broker.folder, ANNA, SECRET) == []
    assert texts(broker) == [OTHER] * 4
    assert broker.registry.get(ERASING, asked.id) is None
