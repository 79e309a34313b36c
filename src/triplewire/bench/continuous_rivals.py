"""A rival of `bench continuous --workload sliding`: rsp-js, with the same question over the same stream.

It is a library and no broker: no network, no disk, and one query. It goes by the times of events, so that a window
closes with the first event after its end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

from triplewire.bench import continuous_readings as readings
from triplewire.bench.machine import usage
from triplewire.bench.report import percentile
from triplewire.model.errors import TriplewireError, Unavailable

VERSIONS = {"rsp-js": "1.3.5"}
SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
GRACE = 20.0
"""Seconds after the last event for what is still to be answered."""
_BUILD_SECONDS = 600.0
_MEMORY_MB = 8_192
"""What it may take; what it has without this is less than half of it."""

Say = Callable[[str], None]
Process = subprocess.Popen[bytes]


def against(name: str, seconds: int, warm_up: int, say: Say) -> dict[str, Any]:
    """What it makes of the stream; why it did not come to the end, where it did not. Raises Unavailable where it cannot
    be built."""
    say(f"building {name}")
    command = _COMMANDS[name](_home(name))
    try:
        return {"version": VERSIONS[name], **_measured(name, command, seconds, warm_up, say)}
    except _Ended as ended:
        return {"version": VERSIONS[name], "failed": str(ended)}


class _Ended(TriplewireError):
    """The rival did, before its time."""


def _measured(name: str, command: list[str], seconds: int, warm_up: int, say: Say) -> dict[str, Any]:
    with _started(command) as process:
        answered: dict[int, int] = {}
        listening = Thread(target=_listen, args=(process, answered), daemon=True)
        _ready(process)
        listening.start()
        say(f"{readings.TRIPLES_PER_S:,} triples a second for {seconds} s to {name}")
        behind = _drive(process, seconds)
        memory = usage([process.pid]).memory
        _let_go(process, listening)
    ends = range((warm_up + readings.STEP) * 1_000, seconds * 1_000, readings.STEP * 1_000)
    late = [float(answered[end] - end) for end in ends if end in answered]
    return {
        "windows": len(late),
        "missing": len(ends) - len(late),
        "late_ms": {told: round(percentile(late, share)) for told, share in SHARES.items()},
        "behind_ms": round(behind * 1_000),
        "memory_mb": round(memory / 1e6),
    }


def _rsp_js(home: Path) -> list[str]:
    if not (home / "node_modules" / "rsp-js").exists():
        _built(["npm", "install", "--no-audit", "--no-fund", f"rsp-js@{VERSIONS['rsp-js']}"], home)
    shutil.copy(_source("continuous_rsp.js"), home / "rival.js")
    return [_tool("node"), f"--max-old-space-size={_MEMORY_MB}", str(home / "rival.js")]


_COMMANDS: Mapping[str, Callable[[Path], list[str]]] = {"rsp-js": _rsp_js}


def _home(name: str) -> Path:
    """Where it is built, once."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = Path(cache) / "triplewire" / "rivals" / f"{name}-{VERSIONS[name]}"
    home.mkdir(parents=True, exist_ok=True)
    return home


def _source(name: str) -> Path:
    return Path(__file__).with_name(name)


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"there is no {name} on the path")
    return found


def _built(command: list[str], home: Path) -> None:
    done = subprocess.run(
        [_tool(command[0]), *command[1:]], cwd=home, capture_output=True, text=True, check=False, timeout=_BUILD_SECONDS
    )
    if done.returncode:
        raise Unavailable(f"{' '.join(command)} failed: {done.stderr[-1_000:]}")


@contextmanager
def _started(command: list[str]) -> Iterator[Process]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    # What it did not take cannot be given to it when it is gone.
    with suppress(BrokenPipeError), process:
        try:
            yield process
        finally:
            process.kill()


def _ready(process: Process) -> None:
    """The question is taken."""
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        _write(process, json.dumps({"query": readings.rival_query()}) + "\n")
    if not process.stdout.readline():
        raise _Ended("it ended before it was ready")


def _drive(process: Process, seconds: int) -> float:
    """The same events at the same pace. The most seconds that it was behind: it takes no more than it can."""
    began, behind = time.monotonic(), 0.0
    for tick in range(seconds * readings.TICKS):
        due = began + tick / readings.TICKS
        time.sleep(max(0.0, due - time.monotonic()))
        numbers = range(tick * readings.EVENTS, (tick + 1) * readings.EVENTS)
        at = tick * 1_000 // readings.TICKS
        try:
            _write(process, "".join(f"{at}\t{readings.triples(number)}\n" for number in numbers))
        except BrokenPipeError:
            raise _Ended(f"it ended {at / 1_000:.1f} s after the beginning of the stream") from None
        behind = max(behind, time.monotonic() - due)
    return behind


def _write(process: Process, text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text.encode())
    process.stdin.flush()


def _listen(process: Process, answered: dict[int, int]) -> None:
    """When the last row of each window came, by the end of the window; milliseconds from the first event."""
    assert process.stdout is not None
    step = readings.STEP * 1_000
    for line in process.stdout:
        told = json.loads(line)
        answered[told["newest"] // step * step + step] = told["at"]


def _let_go(process: Process, listening: Thread) -> None:
    assert process.stdin is not None
    process.stdin.close()
    listening.join(GRACE)
