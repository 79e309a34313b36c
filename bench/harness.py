"""The harness of all benchmarks: the machine and its noise, figures, aims, and the error that ends a run."""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from triplewire.model import ENTRIES
from triplewire.model.errors import TriplewireError, Unavailable

Say = Callable[[str], None]
"""Prints progress."""
Report = dict[str, Any]
BASE = "http://bench.example/"
SOSA = "http://www.w3.org/ns/sosa/"


class Disagreement(TriplewireError):
    """The answer of the engine differs from that of an independent one: the figures mean nothing."""


@contextmanager
def make_directory() -> Iterator[Path]:
    """A temporary directory, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="triplewire-bench-") as directory:
        yield Path(directory)


class Machine:
    """The machine that figures are taken on, with its speed before and after.

    A shared machine can be half as fast a minute later; figures of two runs compare only together with `reference_ms`.
    """

    def __init__(self) -> None:
        self._before = reference_ms()

    def reference(self) -> list[int]:
        return [round(self._before), round(reference_ms())]

    def describe(self, **more: str) -> Report:
        return {**describe_machine(), **more, "reference_ms": self.reference()}


def reference_ms() -> float:
    """Return the CPU time of a fixed piece of plain Python, in milliseconds."""
    began = time.process_time()
    sum(number * number for number in range(1_000_000))
    return (time.process_time() - began) * 1_000


def describe_machine() -> Report:
    return {
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


@dataclass(frozen=True)
class Usage:
    """CPU seconds since each process began, and memory in bytes, shared pages counted once among their users."""

    cpu: float
    memory: int


def measure_tree(pids: Iterable[int], name: str = "") -> Usage:
    """Return the usage of these processes and all their descendants, or of those whose name contains `name`."""
    cpu, memory = 0.0, 0
    for process in _walk_tree(pids):
        try:
            if name not in process.name():
                continue
            times = process.cpu_times()
            memory += process.memory_full_info().pss
            cpu += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return Usage(cpu, memory)


def measure_java(pids: Iterable[int]) -> float:
    """Return the CPU seconds of the Java processes among these and their descendants."""
    seconds = 0.0
    for process in _walk_tree(pids):
        try:
            seconds += sum(process.cpu_times()[:2]) if process.name() == "java" else 0.0
        except psutil.Error:
            continue
    return seconds


def measure_children(name: str = "") -> int:
    """Return the bytes of all descendants of this process, or of those whose name contains `name`."""
    return measure_tree([each.pid for each in psutil.Process().children()], name).memory


def measure_cpu(pids: Iterable[int]) -> float:
    """Return the CPU seconds of these processes alone. Raises Unavailable when one has ended."""
    with _translate_ended():
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def measure_memory(pids: Iterable[int]) -> int:
    """Return the bytes of these processes alone. Raises Unavailable when one has ended."""
    with _translate_ended():
        return sum(psutil.Process(pid).memory_full_info().pss for pid in pids)


@contextmanager
def _translate_ended() -> Iterator[None]:
    try:
        yield
    except psutil.NoSuchProcess as error:
        raise Unavailable(f"process {error.pid} ended while it was measured") from error


def _walk_tree(pids: Iterable[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        try:
            process = psutil.Process(pid)
            yield process
            yield from process.children(recursive=True)
        except psutil.NoSuchProcess:
            continue


def measure_directory(directory: Path) -> int:
    """Return the bytes of all files below a directory."""
    return sum(each.stat().st_size for each in directory.rglob("*") if each.is_file())


@dataclass(frozen=True)
class Aim:
    """A figure by its path in the report, and the bound that it should reach: at most, or at least."""

    title: str
    path: tuple[str, ...]
    bound: float
    unit: str = ""
    least: bool = False

    def read(self, report: Mapping[str, Any]) -> float:
        found: Any = report
        for name in self.path:
            found = found[name]
        return float(found)

    def is_met(self, report: Mapping[str, Any]) -> bool:
        return (self.read(report) >= self.bound) if self.least else (self.read(report) <= self.bound)

    def describe(self) -> str:
        return f"{'at least' if self.least else 'at most'} {self.bound:g}{self.unit}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least that share of the values does not exceed; 0 for none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]


QUANTILES = {"p50": 0.5, "p99": 0.99}


def summarize(values: Sequence[float], shares: Mapping[str, float] = QUANTILES, digits: int | None = None) -> Report:
    """Return percentiles by name, rounded."""
    return {name: round(percentile(values, share), digits) for name, share in shares.items()}


def summarize_delays(milliseconds: Sequence[float]) -> Report:
    return summarize(milliseconds, {**QUANTILES, "max": 1.0})


def flatten(report: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return nested figures as rows of a name and a value."""
    rows: list[tuple[str, Any]] = []
    for name, value in report.items():
        rows += flatten(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(prefix + name, value)]
    return rows


def make_entries(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return log entries, each with at least a position, an event and its text."""
    usual = {"stream": "bench", "time": 0, "received": 0, "syntax": "application/n-quads"}
    return pa.Table.from_pylist([{**usual, **row} for row in rows], schema=ENTRIES)


def check_count(subject: str, found: int, right: int, words: str) -> None:
    """Raises Disagreement with `words`, which may name `found` and `right`, unless they are the same."""
    if found != right:
        raise Disagreement(f"{subject}: {words.format(found=found, right=right)}")
