"""The machine's view of a tree of processes: CPU seconds and memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import psutil


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
