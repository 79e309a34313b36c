"""A crash at any step of a write leaves the old or the new content of a state file, and the next process goes on.

Threats: a process that is killed between two system calls, and a power failure that loses what was not flushed. Every
writer of state replaces its file by `triplewire.config.files`: one that does not is found here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.continuous.join_network.runs import Run
from tests.continuous.oracle import Asked
from triplewire.config.files import FORMAT, prepare_directory, replace_file
from triplewire.config.status import read_heartbeat, write_heartbeat
from triplewire.continuous.batch_planner import Decisions
from triplewire.continuous.join_network.join_order import ArrivalRates
from triplewire.continuous.planner import NetworkProgram
from triplewire.continuous.state import BEFORE_ALL, NEVER, DistinctState, StateChangelog, read_due
from triplewire.continuous.state_manager import StateManager, read_queries
from triplewire.history.dataset_statistics import StatisticsFile, StatisticsRecord
from triplewire.http.peers import repeaters
from triplewire.http.peers.repeaters import Repeater
from triplewire.http.peers.status import load_identity
from triplewire.model import MATCHES
from triplewire.model.clock import ManualClock
from triplewire.model.erasure import LOSSES, Erasure, ErasureScope
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.network.route import PositionStore, RoutePosition
from triplewire.service.transfer.formats import StateFile
from triplewire.storage.lake import redaction
from triplewire.storage.lake.erasure import LakeErasure
from triplewire.storage.lake.maintenance import MaintenanceContext
from triplewire.storage.lake.read_counts import ReadCounter, load_read_counts
from triplewire.storage.lake.redaction import Redaction
from triplewire.testing import CrashRecorder


@dataclass(frozen=True)
class StateWriter:
    """A kind of state file: `write` a version below a folder, `read` the version that is there, None without any."""

    write: Callable[[Path, int], object]
    read: Callable[[Path], object]
    durable: bool = True
    """Without it, a power failure may lose the file: it is read as if there were none."""
    first: object = 1
    second: object = 2
    """What `read` returns after version 1 and after version 2."""


def numbers(value: int) -> pa.Table:
    return pa.table({"number": [value] * 1_000})


def newest_number(changelog: StateChangelog) -> int | None:
    found = [table["number"][0].as_py() for table in changelog.read_range(BEFORE_ALL, (9, 0))]
    return found[-1] if found else None


def write_distinct(folder: Path, version: int) -> None:
    row = {"position": version, "group": 7, "value": 1.0, "terms": ["0", f'"{version}"']}
    DistinctState(StateChangelog(folder)).drop_known(version, pa.Table.from_pylist([row], schema=MATCHES), {7: 0})


def read_distinct(folder: Path) -> int:
    """How many answers are known."""
    rows = [{"position": 9, "group": 7, "value": 1.0, "terms": ["0", f'"{each}"']} for each in (1, 2)]
    matches = pa.Table.from_pylist(rows, schema=MATCHES)
    unknown: pa.Table = DistinctState(StateChangelog(folder)).drop_known(9, matches, {7: 0})
    return 2 - int(unknown.num_rows)


def decisions(version: int) -> Decisions:
    return Decisions(version, True, ArrivalRates())


def program(version: int) -> NetworkProgram:
    patterns = (("?a", "<urn:p>", "?b"), ("?b", "<urn:q>", "?c"))
    return Run([Asked(patterns[:version])]).program


def read_programs(folder: Path) -> int | None:
    """The greatest depth. Workers may read any of the files."""
    files = (folder / "programs").glob("[!.]*")
    return max((NetworkProgram.from_bytes(each.read_bytes()).depth for each in files), default=None)


def read_query_files(folder: Path) -> int | None:
    files = (folder / "windows").glob("[!.]*")
    return max((len(read_queries(each.read_bytes())) for each in files), default=None)


def queries(count: int) -> list[ContinuousQuery]:
    return [ContinuousQuery(str(number), "…", into="out", variables=("s",)) for number in range(count)]


def lake_erasure(folder: Path) -> LakeErasure:
    house = cast("MaintenanceContext", SimpleNamespace(table=folder / "quads"))
    return LakeErasure(house, Erasure("x", ErasureScope.EVENT, "urn:e:1", 9))


def losses(count: int) -> pa.Table:
    rows = [{"position": each, "quads": 1} for each in range(count)]
    return pa.Table.from_pylist(rows, schema=LOSSES)


def redact(folder: Path, version: int) -> None:
    """Version 1 is a data file; version 2 has lost an event."""
    path = folder / "part.parquet"
    if version == 1:
        quads = {"position": [1, 2], "quad": [0, 0], "graph": ["<urn:e:1>", "<urn:e:2>"]}
        pq.write_table(pa.table(quads), path)
    else:
        Redaction(Erasure("x", ErasureScope.EVENT, "urn:e:1", 9), LOSSES.empty_table()).apply(path)


def read_record(folder: Path) -> int | None:
    record = StatisticsFile(folder / "statistics").read()
    return None if record is None else record.rows


def write_counts(folder: Path, version: int) -> None:
    counter = ReadCounter(folder, ManualClock(), name="one", seconds=0.0)
    counter.add(["zone"] * version)
    counter.save()


def read_counts(folder: Path) -> float | None:
    return load_read_counts(folder, ManualClock().now()).get("zone")


def read_position(folder: Path) -> str | None:
    record = PositionStore(folder).load("route")
    return None if record is None else record.after


def read_transfer(folder: Path) -> object:
    state = StateFile(folder / "state").load()
    return None if state is None else state["version"]


def read_repeater(folder: Path) -> float | None:
    found = repeaters._read(folder)
    return found[0].load if found else None


WRITERS = {
    "state changelog": StateWriter(
        lambda folder, version: StateChangelog(folder).write((0, 1), numbers(version)),
        lambda folder: newest_number(StateChangelog(folder)),
    ),
    "state snapshot": StateWriter(
        lambda folder, version: StateChangelog(folder).write_snapshot(version, numbers(version)),
        lambda folder: newest_number(StateChangelog(folder)),
    ),
    "distinct state": StateWriter(write_distinct, read_distinct),
    "program": StateWriter(
        lambda folder, version: StateManager(folder).write_program(program(version), decisions(1), version),
        read_programs,
    ),
    "windowed queries": StateWriter(
        lambda folder, version: StateManager(folder).write_queries(queries(version), version), read_query_files
    ),
    "decisions": StateWriter(
        lambda folder, version: StateManager(folder).write_decisions(decisions(version)),
        lambda folder: StateManager(folder).read_decisions(1, True).partitions,
    ),
    "due time": StateWriter(
        lambda folder, version: StateManager(folder).write_due(version), lambda folder: read_due(folder / "due")
    ),
    "erasure notes": StateWriter(
        lambda folder, version: lake_erasure(folder).remember(losses(version)),
        lambda folder: None if (found := lake_erasure(folder).remembered()) is None else found.num_rows,
    ),
    "redacted data file": StateWriter(
        redact, lambda folder: pq.read_table(folder / "part.parquet").num_rows, first=2, second=1
    ),
    "redacted table log": StateWriter(
        lambda folder, version: (
            (folder / "0.json").write_bytes(b"1")
            if version == 1
            else redaction._replace_log_file(folder / "0.json", b"2")
        ),
        lambda folder: int((folder / "0.json").read_bytes()),
    ),
    "relay position": StateWriter(
        lambda folder, version: PositionStore(folder).intend("route", "a", RoutePosition("up", str(version))),
        read_position,
        first="1",
        second="2",
    ),
    "transfer state": StateWriter(
        lambda folder, version: StateFile(folder / "state").save({"version": version}), read_transfer
    ),
    "data directory format": StateWriter(
        lambda folder, version: prepare_directory(folder) if version == 2 else None,
        lambda folder: 2 if (folder / "format").exists() and (folder / "format").read_text() == f"{FORMAT}\n" else 1,
    ),
    "edge identity": StateWriter(
        lambda folder, version: version == 1 or load_identity(folder / "id"),
        lambda folder: 1 if not (folder / "id").exists() else (2 if len((folder / "id").read_text()) == 16 else "torn"),
    ),
    "heartbeat": StateWriter(
        lambda folder, version: write_heartbeat(folder / "beat", ManualClock(), str(version)),
        lambda folder: read_heartbeat(folder / "beat").state,
        durable=False,
        first="1",
        second="2",
    ),
    "lake statistics": StateWriter(
        lambda folder, version: StatisticsFile(folder / "statistics").write(StatisticsRecord(0, 0, version, [], {})),
        read_record,
        durable=False,
    ),
    "read counts": StateWriter(write_counts, read_counts, durable=False, first=1.0, second=2.0),
    "announced repeaters": StateWriter(
        lambda folder, version: repeaters._write(folder, Repeater("r", {}, float(version))),
        read_repeater,
        durable=False,
    ),
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=list(WRITERS))
def test_a_crash_leaves_the_old_or_the_new_content(writer: StateWriter, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    writer.write(folder, 1)
    assert writer.read(folder) == writer.first
    with CrashRecorder(folder, tmp_path / "crashes") as recorder:
        writer.write(folder, 2)
    assert recorder.replaced, "the file is not replaced atomically"
    assert recorder.durable or not writer.durable, "the directory is not flushed"
    assert writer.read(folder) == writer.second
    for copy in recorder.copies:
        found = writer.read(copy)
        lost = not writer.durable and found not in (writer.first, writer.second)
        assert found in (writer.first, writer.second) or lost, copy
        writer.write(copy, 2)
        assert writer.read(copy) == writer.second, "the next process does not go on"


@pytest.mark.parametrize("writer", [each for name, each in WRITERS.items() if not name.startswith("redacted")])
def test_a_crash_of_the_first_write_leaves_nothing_or_the_content(writer: StateWriter, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    empty = writer.read(folder)
    with CrashRecorder(folder, tmp_path / "crashes") as recorder:
        writer.write(folder, 1)
    for copy in recorder.copies if writer.durable else recorder.copies[-1:]:
        assert writer.read(copy) in (empty, writer.first), copy


def write_in_place(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def write_without_flush(path: Path, content: bytes) -> None:
    replace_file(path, content, durable=False)


def replaces_safely(write: Callable[[Path, bytes], None], tmp_path: Path) -> bool:
    folder = tmp_path / write.__name__
    folder.mkdir()
    (folder / "state").write_bytes(b"old")
    with CrashRecorder(folder, tmp_path / f"{write.__name__}-crashes") as recorder:
        write(folder / "state", b"new")
    found = {(copy / "state").read_bytes() for copy in recorder.copies}
    return bool(recorder.replaced) and recorder.durable and found == {b"old", b"new"}


def test_the_recorder_finds_writers_that_do_not_replace_their_file(tmp_path: Path) -> None:
    assert replaces_safely(replace_file, tmp_path)
    assert not replaces_safely(write_in_place, tmp_path)
    assert not replaces_safely(write_without_flush, tmp_path)


def test_a_due_time_that_is_not_there_is_never(tmp_path: Path) -> None:
    assert read_due(tmp_path / "due") == NEVER
