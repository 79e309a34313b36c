"""The machine's view of a tree of processes: CPU seconds and memory."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import psutil

from triplewire.model.errors import Unavailable


@dataclass(frozen=True)
class Usage:
    """CPU seconds since each process began, and memory in bytes, shared pages counted once among their users."""

    cpu: float
    memory: int


def usage(pids: Iterable[int]) -> Usage:
    """Of these processes and all their descendants."""
    cpu, memory = 0.0, 0
    for process in _tree(pids):
        try:
            times = process.cpu_times()
            memory += process.memory_full_info().pss
            cpu += times.user + times.system + times.children_user + times.children_system
        except psutil.Error:
            continue
    return Usage(cpu, memory)


def own_usage(pids: Iterable[int]) -> Usage:
    """Of these processes alone. Raises Unavailable when one is gone."""
    try:
        processes = [psutil.Process(pid) for pid in pids]
        cpu = sum(sum(process.cpu_times()[:2]) for process in processes)
        return Usage(cpu, sum(process.memory_full_info().pss for process in processes))
    except psutil.NoSuchProcess as error:
        raise Unavailable(f"process {error.pid} ended while it was measured") from error


def own_seconds(pids: Iterable[int]) -> float:
    """CPU seconds of these processes alone; quicker than `own_usage`, which looks at all of their memory. Raises
    Unavailable when one is gone."""
    try:
        return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)
    except psutil.NoSuchProcess as error:
        raise Unavailable(f"process {error.pid} ended while it was measured") from error


def reference_ms() -> float:
    """CPU time of a fixed piece of plain Python, in milliseconds: how fast the machine is just now.

    A shared machine can be half as fast a minute later; figures of two runs compare only together with this one.
    """
    began = time.process_time()
    sum(number * number for number in range(1_000_000))
    return (time.process_time() - began) * 1_000


def description() -> dict[str, Any]:
    """What figures were taken on."""
    return {
        "cores": psutil.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def jvm_seconds(pids: Iterable[int]) -> float:
    """CPU seconds of the Java processes among them and their descendants."""
    seconds = 0.0
    for process in _tree(pids):
        try:
            if process.name() == "java":
                seconds += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return seconds


def _tree(pids: Iterable[int]) -> Iterable[psutil.Process]:
    for pid in pids:
        try:
            process = psutil.Process(pid)
            yield process
            yield from process.children(recursive=True)
        except psutil.NoSuchProcess:
            continue
