"""Files are replaced whole or not at all, locks are exclusive, and a data directory of another format is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from triplewire.config.files import FORMAT, check_format, file_lock, prepare_directory, replace_file, replacing
from triplewire.model.errors import BadRequest, Conflict


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "state"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["state"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old")

    def fail() -> None:
        with replacing(path) as file:
            file.write(b"ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure after the rename must not leave an empty file, one after the return not the old one."""
    calls: list[str] = []
    fsync, rename = os.fsync, os.replace

    def record_fsync(handle: int) -> None:
        kind = "directory" if Path(f"/proc/self/fd/{handle}").resolve() == tmp_path else "file"
        calls.append(f"fsync {kind}")
        fsync(handle)

    def record_rename(source: Path, target: Path) -> None:
        calls.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_rename)
    replace_file(tmp_path / "state", b"new")
    assert calls == ["fsync file", "rename", "fsync directory"]


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with file_lock(path, "taken"), pytest.raises(Conflict, match="taken"), file_lock(path, "taken"):
        pass
    with file_lock(path, "taken"):
        pass


def test_a_new_directory_says_its_format_and_is_taken_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    check_format(data)
    prepare_directory(data)
    assert (data / "format").read_text() == f"{FORMAT}\n"
    prepare_directory(data)
    check_format(data)


@pytest.mark.parametrize("name", ["log.db", "access.db", "lake"])
def test_a_directory_without_a_format_is_format_1_and_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    for check in (check_format, prepare_directory):
        with pytest.raises(BadRequest, match=f"has format 1, .* format {FORMAT}"):
            check(tmp_path)
    assert not (tmp_path / "format").exists()


def test_a_directory_of_a_later_format_is_refused_with_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "format").write_text("99\n")
    with pytest.raises(BadRequest, match=f"has format 99, .* format {FORMAT}"):
        prepare_directory(tmp_path)
