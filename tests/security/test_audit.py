"""Audits: lines that are only ever added to, by several processes, within bounds."""

from __future__ import annotations

import os
import resource
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from triplewire.model.errors import StorageFull
from triplewire.security.audit import ACTS, REFUSALS, AuditLog


def audits(folder: Path, size: int = 1_000_000, volumes: int = 3) -> AuditLog:
    return AuditLog(folder / "audit", size, volumes)


def record(number: int) -> dict[str, object]:
    return {"at": f"{number:04}", "who": "token:a", "what": "eraseEvent"}


def test_what_was_written_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    made = audits(tmp_path)
    made.write(ACTS, [record(1), record(3)], durable=True)
    made.write(REFUSALS, [record(2)])
    assert list(made.read()) == [record(1), record(2), record(3)]
    assert list(made.read([REFUSALS])) == [record(2)]


def test_nothing_was_written_yet(tmp_path: Path) -> None:
    assert list(audits(tmp_path).read()) == []


def test_it_is_for_nobody_else_to_read(tmp_path: Path) -> None:
    audits(tmp_path).write(ACTS, [record(1)])
    assert (tmp_path / "audit" / "acts.jsonl").stat().st_mode & 0o077 == 0


def test_a_full_volume_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    made = audits(tmp_path, size=100, volumes=3)
    for number in range(20):
        made.write(ACTS, [record(number)])
    kept = [each["at"] for each in made.read()]
    assert kept == [f"{number:04}" for number in range(20 - len(kept), 20)]
    assert 4 <= len(kept) < 10
    assert len(list((tmp_path / "audit").glob("acts*"))) == 3


def test_the_names_of_files_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file, and one that was rotated, is found after a power failure."""
    folders: list[Path] = []
    fsync = os.fsync

    def record_fsync(handle: int) -> None:
        folders.append(Path(f"/proc/self/fd/{handle}").resolve())
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record_fsync)
    made = audits(tmp_path, size=10)
    made.write(ACTS, [record(0)], durable=True)
    assert folders == [tmp_path / "audit"]
    made.write(ACTS, [record(1)])
    assert folders == [tmp_path / "audit"] * 2


def test_refusals_push_out_no_acts(tmp_path: Path) -> None:
    """Threat: whoever is refused comes again until what was done is forgotten."""
    made = audits(tmp_path, size=100, volumes=2)
    made.write(ACTS, [record(0)])
    for number in range(1, 100):
        made.write(REFUSALS, [record(number)])
    assert next(made.read()) == record(0)


def test_several_write_at_once_and_every_line_is_whole(tmp_path: Path) -> None:
    writers = [audits(tmp_path, size=4_000, volumes=1_000) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: writers[number % 4].write(ACTS, [record(number)]), range(200)))
    assert [each["at"] for each in writers[0].read()] == [f"{number:04}" for number in range(200)]


def test_half_a_line_is_taken_back(tmp_path: Path) -> None:
    """A limit on the size of files takes a part of a line, and then nothing, as a full disk does."""
    made = audits(tmp_path)
    made.write(ACTS, [record(1)])
    whole = (tmp_path / "audit" / "acts.jsonl").read_bytes()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 10, limits[1]))
    try:
        with pytest.raises(StorageFull, match="audit log"):
            made.write(ACTS, [record(2)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (tmp_path / "audit" / "acts.jsonl").read_bytes() == whole
    made.write(ACTS, [record(3)])
    assert list(made.read()) == [record(1), record(3)]


def test_a_folder_that_cannot_be_made_is_an_error_that_can_be_told(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    with pytest.raises(StorageFull):
        audits(tmp_path).write(ACTS, [record(1)])
