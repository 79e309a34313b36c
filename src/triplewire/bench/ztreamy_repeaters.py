"""One master and repeaters, as in figure 5 of the paper on Ztreamy: each an edge with a log of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from triplewire.bench.fanout_servers import Manner, Server, edges

_STREAM = "bench"


@contextmanager
def repeated(repeaters: int, manner: Manner) -> Iterator[Server]:
    """Clients are spread evenly over all of them; the time of the relays counts as that of the servers."""
    with ExitStack() as closing:
        server = closing.enter_context(edges(1, manner, logs=1 + repeaters))
        directory = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="triplewire-relay-")))
        master, *others = (f"http://{host}:{port}" for host, port in (target.address for target in server.targets))
        relays = [
            closing.enter_context(_relay(directory / f"{number}.toml", master, url))
            for number, url in enumerate(others)
        ]
        yield Server(server.targets, [*server.pids, *relays])


@contextmanager
def _relay(file: Path, above: str, below: str) -> Iterator[int]:
    """One that mirrors the stream of an edge at another; its process."""
    file.write_text(f'to = "{below}"\n\n[[relay]]\nfrom = "{above}/streams/{_STREAM}"\n')
    with file.with_suffix(".log").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "triplewire", "relay", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(20.0)
