"""What was acknowledged is there once, whatever happened to the process or the disk."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.storage.log import appender
from triplewire.model import END
from triplewire.model.clock import ManualClock, SystemClock
from triplewire.model.errors import StorageFull, Unavailable
from triplewire.storage.log.sqlite import SqliteLog
from triplewire.storage.sqlite import Database, _write_locks, connect
from triplewire.testing import publication

Acknowledged: TypeAlias = dict[int, int]
"""The number of each group that was acknowledged, and the position that its first event was given."""


def appending(path: Path, story: str, stream: str) -> subprocess.Popen[str]:
    command = [sys.executable, appender.__file__, story, str(path), stream]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def acknowledged(lines: list[str]) -> Acknowledged:
    return {int(number): int(position) for number, position in (line.split() for line in lines)}


def killed_after(process: subprocess.Popen[str], count: int) -> Acknowledged:
    """Kill it once it has acknowledged so many; what it acknowledged until it died counts as well."""
    assert process.stdout
    lines = list(islice(process.stdout, count))
    process.kill()
    lines += [line for line in process.stdout if line.endswith("\n")]
    process.stdout.close()
    process.wait()
    return acknowledged(lines)


def groups(log: SqliteLog, stream: str) -> Acknowledged:
    """The groups that are in the log, each checked to be whole and to be there once."""
    table = log.read(0, END, 1_000_000).select(["position", "stream", "event"])
    rows = [row for row in table.to_pylist() if row["stream"] == stream]
    found: Acknowledged = {}
    for first in range(0, len(rows), appender.GROUP):
        group = rows[first : first + appender.GROUP]
        numbers = [int(row["event"].rpartition("/")[2]) for row in group]
        number, position = numbers[0] // appender.GROUP, group[0]["position"]
        assert numbers == list(range(number * appender.GROUP, (number + 1) * appender.GROUP))
        assert [row["position"] for row in group] == list(range(position, position + appender.GROUP))
        assert number not in found
        found[number] = position
    return found


def test_kill_9_while_appending_loses_and_doubles_nothing(tmp_path: Path) -> None:
    heads = [0]
    for stream in ("first", "second", "third"):
        acks = killed_after(appending(tmp_path / "log.db", "forever", stream), 20)
        log = SqliteLog(tmp_path / "log.db", SystemClock())
        stored = groups(log, stream)
        assert len(acks) >= 20
        assert acks.items() <= stored.items()
        assert min(stored.values()) == heads[-1] + 1
        heads.append(log.head())
        assert log.read(0, END, 1_000_000).num_rows == log.head()
        log.close()


def test_kill_9_of_one_writer_does_not_stop_the_other(tmp_path: Path) -> None:
    first, second = (appending(tmp_path / "log.db", "forever", stream) for stream in ("first", "second"))
    early = killed_after(first, 10)
    late = killed_after(second, 40)
    log = SqliteLog(tmp_path / "log.db", SystemClock())
    assert early.items() <= groups(log, "first").items()
    assert late.items() <= groups(log, "second").items()
    assert log.read(0, END, 1_000_000).column("position").to_pylist() == list(range(1, log.head() + 1))


def test_a_disk_that_refuses_stores_nothing_of_the_append_and_works_again_with_space(tmp_path: Path) -> None:
    process = appending(tmp_path / "log.db", "until_full", "s")
    output, _ = process.communicate()
    assert process.returncode == 0
    acks = acknowledged(output.splitlines())
    last = max(acks)
    assert len(acks) > 10
    assert last - 1 not in acks
    assert groups(SqliteLog(tmp_path / "log.db", SystemClock()), "s") == acks
    assert acks[last] == acks[last - 2] + appender.GROUP


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    """No test can cut the power; this one holds what the promise rests on."""
    connection = connect(tmp_path / "some.db")
    (journal,) = connection.execute("PRAGMA journal_mode").fetchone()
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    connection.close()
    assert (journal, synchronous) == ("wal", 2)


def test_a_full_database_is_storage_full_and_recovers(tmp_path: Path) -> None:
    database = Database(tmp_path / "some.db", {"t": "CREATE TABLE t (x)"})
    with database.writing() as connection:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 4}")
    with pytest.raises(StorageFull, match=r"some\.db"), database.writing() as connection:
        connection.executemany("INSERT INTO t VALUES (zeroblob(?))", [(10,), (100_000,)])
    with database.reading() as connection:
        assert connection.execute("SELECT * FROM t").fetchall() == []
        connection.execute("PRAGMA max_page_count = 100000")
    with database.writing() as connection:
        connection.execute("INSERT INTO t VALUES (zeroblob(100000))")


@pytest.mark.parametrize("process", ["this", "another"])
def test_a_writer_that_does_not_let_go_makes_others_unavailable(tmp_path: Path, process: str) -> None:
    schema = {"t": "CREATE TABLE t (x)"}
    holder = Database(tmp_path / "some.db", schema, lock_seconds=0)
    if process == "another":
        # Another process has another lock.
        _write_locks.clear()
    other = Database(tmp_path / "some.db", schema, lock_seconds=0)
    with holder.writing(), pytest.raises(Unavailable, match="locked"), other.writing():
        pytest.fail("two writers at once")
    with other.writing() as connection:
        connection.execute("INSERT INTO t VALUES (1)")


def test_a_reader_that_never_ends_stops_no_writer_and_the_write_ahead_log_shrinks_after_it(tmp_path: Path) -> None:
    schema = {"t": "CREATE TABLE t (x)"}
    database = Database(tmp_path / "some.db", schema, wal_bytes=100_000, readers_seconds=0)

    def write(times: int) -> int:
        for _ in range(times):
            with database.writing() as connection:
                connection.execute("INSERT INTO t VALUES (zeroblob(10000))")
        return (tmp_path / "some.db-wal").stat().st_size

    write(2)
    with database.reading() as reader:
        unfinished = reader.execute("SELECT * FROM t")
        unfinished.fetchone()
        assert write(50) > 500_000
        unfinished.close()
    assert write(50) < 200_000
    database.close()


def test_a_fault_of_ours_is_not_mistaken_for_the_disk(tmp_path: Path) -> None:
    database = Database(tmp_path / "some.db", {})
    with pytest.raises(sqlite3.OperationalError, match="no such table"), database.writing() as connection:
        connection.execute("INSERT INTO missing VALUES (1)")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A log of ten appends whose write-ahead log was never moved into the file, and how long it was after each."""
    directory = tmp_path_factory.mktemp("recorded")
    log = SqliteLog(directory / "log.db", ManualClock())
    ends = []
    for number in range(10):
        log.append([publication(*range(number * 3, number * 3 + 3))])
        ends.append((directory / "log.db-wal").stat().st_size)
    copy = tmp_path_factory.mktemp("copy")
    for name in ("log.db", "log.db-wal"):
        shutil.copy(directory / name, copy / name)
    log.close()
    return copy, ends


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1), garbage=st.binary(max_size=5_000))
def test_a_torn_write_ahead_log_gives_every_append_that_was_whole_and_no_part_of_another(
    recorded: tuple[Path, list[int]], tmp_path_factory: pytest.TempPathFactory, share: float, garbage: bytes
) -> None:
    """A power cut tears what was being written. What was synced before it must be there, all of it, in order."""
    source, ends = recorded
    cut = round(share * ends[-1])
    directory = tmp_path_factory.mktemp("torn")
    shutil.copy(source / "log.db", directory)
    torn = (source / "log.db-wal").read_bytes()[:cut] + garbage
    (directory / "log.db-wal").write_bytes(torn)
    log = SqliteLog(directory / "log.db", ManualClock())
    whole = sum(end <= cut for end in ends)
    assert log.read(0, END, 100).column("position").to_pylist() == list(range(1, 3 * whole + 1))
    assert log.head() == 3 * whole
    assert log.append([publication(99)]) == [range(3 * whole + 1, 3 * whole + 2)]
    log.close()
