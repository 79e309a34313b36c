"""`bench` works in a clone, and says from an installed package where benchmarks are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import triplewire

PACKAGE = Path(triplewire.__file__).parent


def run_bench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of the package in a folder, which is not the current directory."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "120", "TERM": "dumb"}
    command = [sys.executable, "-m", "triplewire", "bench", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)


def test_a_clone_measures() -> None:
    told = run_bench(PACKAGE.parent, "match", "--help")
    assert told.returncode == 0, told.stderr
    assert "triplewire bench match [OPTIONS]" in told.stdout
    assert "--growth" in told.stdout
    refused = run_bench(PACKAGE.parent, "match", "--workload", "nothing")
    assert refused.returncode == 1
    assert "there are paths, mixed" in refused.stderr


def test_an_installed_package_says_that_benchmarks_come_with_a_clone(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "site-packages"
    shutil.copytree(PACKAGE, folder / "triplewire", ignore=shutil.ignore_patterns("__pycache__"))
    for arguments in ((), ("--help",), ("match", "--workload", "mixed")):
        told = run_bench(folder, *arguments)
        assert (told.returncode, told.stdout) == (1, "")
        assert "come with a clone" in told.stderr
        assert "make setup" in told.stderr
