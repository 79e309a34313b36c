"""`bench fanout`: one stream to many clients, beside a loop that merely writes, and beside nginx with nchan."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from urllib.parse import urlencode

import psutil
from rich.console import RenderableType

from bench.fanout_load import CLIENTS_EACH, SPARE_FILES, Load, Received, Target, start_load
from bench.harness import Machine, Report, Say, make_directory, measure_cpu, measure_memory
from bench.links import Link, allow_files, ask_all
from bench.processes import HOST, edge_settings, free_port, is_listening, start_edges, wait_idle
from bench.tables import format_value, make_table
from triplewire.http.delivery.topics import LISTENERS
from triplewire.model.errors import Unavailable

_EVENLY = 0.97
"""How full edges are when the first of them has no more room: clients are spread by chance."""
_NCHAN_SECONDS = 10.0


@dataclass(frozen=True)
class ListenOptions:
    """The buffer window that clients ask for, in seconds, and the compression that they accept."""

    buffer: float | None = None
    encoding: str = "identity"

    def write_request(self, path: str, port: int) -> str:
        asked = "" if self.buffer is None else "?" + urlencode({"linger": f"{self.buffer:g}"})
        head = f"GET {path}{asked} HTTP/1.1\r\nHost: {HOST}:{port}\r\nAccept: text/event-stream\r\n"
        return f"{head}Accept-Encoding: {self.encoding}\r\n\r\n"


@dataclass(frozen=True)
class FanoutOptions:
    """How many clients listen, how, to how much, and for how long. `warm` are seconds of the same load before the
    measurement: longer than new clients wait for the compression context that they share. `uneven` events come as a
    Poisson process has them."""

    clients: int = 1_000
    rate: float = 10.0
    seconds: float = 10.0
    listen: ListenOptions = ListenOptions()
    processes: int = 1
    size: int = 500
    kind: str = "observation"
    against: str = ""
    warm: float = 6.0
    uneven: bool = False


@dataclass(frozen=True)
class Server:
    """Targets that clients connect to, evenly spread, and the processes whose time counts. Events go to the first."""

    targets: Sequence[Target]
    pids: Sequence[int]


@dataclass(frozen=True)
class FanoutCost:
    """Messages that clients received, the bytes that the server grew by, seconds, and CPU seconds."""

    received: Received
    grown: int
    seconds: float
    cpu: float
    generator_cpu: float

    def per_delivery(self, seconds: float) -> float:
        """Return microseconds."""
        return round(seconds * 1e6 / max(1, self.received.delivered), 3)

    def figures(self) -> Report:
        return {
            **self.received.figures(),
            "server_cpu_us_per_delivery": self.per_delivery(self.cpu),
            "deliveries_per_cpu_second": round(self.received.delivered / max(0.001, self.cpu)),
            "generator_cpu_us_per_delivery": self.per_delivery(self.generator_cpu),
            "kb_per_client": round(self.grown / 1_000 / max(1, self.received.clients), 2),
        }


def run(options: FanoutOptions, say: Say) -> Report:
    """Measure edges, then bare writing of the same bytes, then nchan if asked for. Raises Unavailable."""
    _check_room(options)
    machine = Machine()
    with make_directory() as directory:
        trace = directory / "trace.json"
        say(f"{options.processes} edges, {options.clients:,} clients, {options.rate:g} events a second")
        with start_servers(options.processes, options.listen) as server:
            ours = measure_server(options, server, say, trace)
        say("a loop that writes the same bytes")
        least = _measure_bare(options, say, trace)
    theirs = {}
    if options.against:
        say(f"nginx with nchan, {options.processes} workers")
        with _start_nchan(options.processes) as server:
            theirs[options.against] = measure_server(options, server, say).figures()
    names = ("clients", "rate", "seconds", "processes")
    return {
        **{name: getattr(options, name) for name in names},
        "buffer": options.listen.buffer,
        "encoding": options.listen.encoding,
        "event_bytes": options.size,
        **ours.figures(),
        "bare_cpu_us_per_delivery": ours.per_delivery(least.cpu),
        "ratio": round(ours.cpu / max(0.001, least.cpu), 2),
        **theirs,
        "machine": machine.describe(),
    }


def sweep(options: FanoutOptions, clients: Sequence[int], say: Say) -> Report:
    """Run once for each number of clients; `growth` is how many times as long a delivery takes with the most."""
    runs = [run(replace(options, clients=count), say) for count in sorted(clients)]
    costs = [each["server_cpu_us_per_delivery"] for each in runs]
    return {"runs": runs, "growth": round(costs[-1] / max(0.001, costs[0]), 2)}


def measure_server(options: FanoutOptions, server: Server, say: Say, trace: Path | None = None) -> FanoutCost:
    """Connect, warm up, and measure."""
    wait_idle(server.pids, 5 * options.warm)
    empty, setup = measure_memory(server.pids), {"kind": options.kind, "size": options.size}
    with start_load(server.targets, options.clients, say, setup, trace) as load:
        say(f"connected in {load.connect():.1f} s; warming up")
        load.publish(max(1, round(options.rate * options.warm)), options.rate)
        load.settle()
        load.mark()
        say(f"measuring for {options.seconds:g} s")
        began = _read_clocks(server, load)
        events = max(1, round(options.rate * options.seconds))
        expected = load.publish(events, options.rate, uneven=options.uneven)
        spent = [now - then for now, then in zip(_read_clocks(server, load), began, strict=True)]
        grown = measure_memory(server.pids) - empty
        load.settle()
        return FanoutCost(load.read(expected), grown, *spent)


def _read_clocks(server: Server, load: Load) -> tuple[float, float, float]:
    return time.monotonic(), measure_cpu(server.pids), measure_cpu(load.pids)


def _measure_bare(options: FanoutOptions, say: Say, trace: Path) -> FanoutCost:
    """Measure processes that accept connections, and write a trace to all of them."""
    port = free_port()
    with ExitStack() as closing:
        links = [Link("bench.fanout_bare", {"address": (HOST, port)}) for _ in range(options.processes)]
        for link in links:
            closing.callback(link.close)
            link.hear()
        server = Server([Target((HOST, port), ListenOptions().write_request("/", port))], [link.pid for link in links])
        load = closing.enter_context(start_load(server.targets, options.clients, say, {}))
        load.connect(lambda: ask_all(links, {"do": "accept"}, 60.0))
        load.settle()
        load.mark()
        began = _read_clocks(server, load)
        ask_all(links, {"replay": str(trace)}, options.seconds + 60.0)
        spent = [now - then for now, then in zip(_read_clocks(server, load), began, strict=True)]
        load.settle()
        received = load.read(range(0))
    if len({digest for digest, _ in received.digests}) != 1:
        raise Unavailable("clients did not get the same bytes from the loop that merely writes")
    return FanoutCost(received, 0, *spent)


@contextmanager
def start_servers(processes: int, listen: ListenOptions, logs: int = 1) -> Iterator[Server]:
    """Start so many edges on one port and one log, without a pipeline, which has no part in streams. With several logs,
    so many for each, on a port of its own."""
    allow_files()
    with make_directory() as directory:
        homes = [edge_settings(directory / str(log)) for log in range(logs)]
        with start_edges([home for home in homes for _ in range(processes)], idle=0.0) as children:
            path, ports = "/streams/bench", [home.port for home in homes]
            targets = [Target((HOST, port), listen.write_request(path, port), path) for port in ports]
            yield Server(targets, [child.pid or 0 for child in children])


def find_nchan(path: str | None = None) -> tuple[str, str]:
    """Return nginx, looked for in a path like that of the shell, and nchan's module. Raises Unavailable."""
    nginx = shutil.which("nginx", path=path or f"{os.defpath}:{os.environ.get('PATH', '')}:/usr/sbin")
    if nginx is None:
        raise Unavailable("nginx is not installed; on Debian: apt install nginx-light libnginx-mod-nchan")
    said = subprocess.run([nginx, "-V"], capture_output=True, text=True, check=True).stderr
    found = re.search(r"--modules-path=(\S+)", said)
    module = Path(found[1] if found else "/usr/lib/nginx/modules") / "ngx_nchan_module.so"
    if not module.exists():
        raise Unavailable(f"nginx has no nchan at {module}; on Debian: apt install libnginx-mod-nchan")
    return nginx, str(module)


@contextmanager
def _start_nchan(workers: int) -> Iterator[Server]:
    """Start nginx in a directory that is thrown away. The time of its workers counts, not that of their master."""
    (nginx, module), port, files = find_nchan(), free_port(), allow_files()
    with make_directory() as directory:
        # Workers of a master that is root run as another user.
        directory.chmod(0o755)
        # Without `reuseport` the worker that is quickest takes nearly all of the clients.
        spread = " reuseport" if workers > 1 else ""
        values = {"module": module, "directory": directory, "workers": workers, "files": files, "spread": spread}
        template = Template(Path(__file__).with_name("nchan.conf").read_text())
        configuration = directory / "nginx.conf"
        configuration.write_text(template.substitute(values, connections=files - 50, host=HOST, port=port))
        command = [nginx, "-p", str(directory), "-c", str(configuration)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            pids = _wait_nchan(process, workers, port)
            yield Server([Target((HOST, port), ListenOptions().write_request("/listen", port), "/publish")], pids)
        finally:
            process.terminate()
            process.communicate(timeout=20)


def _wait_nchan(process: subprocess.Popen[bytes], workers: int, port: int) -> list[int]:
    end = time.monotonic() + _NCHAN_SECONDS
    while time.monotonic() < end and process.poll() is None:
        children = psutil.Process(process.pid).children()
        if len(children) >= workers and is_listening(process.pid, port):
            return [child.pid for child in children]
        time.sleep(0.05)
    process.kill()
    raise Unavailable(f"nginx does not start: {process.communicate()[1].decode(errors='replace')[-500:]}")


def _check_room(options: FanoutOptions) -> None:
    """Raises Unavailable now for a run that would fail after minutes."""
    if options.against:
        find_nchan()
    room = options.processes * LISTENERS
    if options.clients > _EVENLY * room:
        raise Unavailable(
            f"{options.processes} edges have room for {room:,} clients, spread by chance; "
            f"give {options.clients:,} more of them with --processes"
        )
    most = max(options.clients / options.processes / _EVENLY, min(options.clients, CLIENTS_EACH)) + SPARE_FILES
    if most > (files := allow_files()):
        raise Unavailable(f"{most:,.0f} files would be open in a process, and {files:,} may be; see ulimit -n")


def make_tables(report: Report) -> list[RenderableType]:
    """Return a column for each run, and one more for nchan."""
    runs = report.get("runs", [report])
    columns = [(f"{run['clients']:,} clients", run) for run in runs]
    columns += [(f"nchan, {run['clients']:,}", run["nchan"]) for run in runs if "nchan" in run]
    names = [name for name, value in runs[0].items() if not isinstance(value, dict) and name != "clients"]
    rows = [(name, *(format_value(column.get(name, "–")) for _, column in columns)) for name in names]
    title = f"{runs[0]['rate']:g} events a second to each client"
    table = make_table(title, ("measure", *(name for name, _ in columns)), rows)
    if "growth" in report:
        table.caption = f"a delivery takes {report['growth']:g} times as long with the most clients as with the fewest"
    return [table]
