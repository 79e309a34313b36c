"""`bench doors`: what it costs to ask who comes, to look at what they may see, and to speak their dialects."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from triplewire.bench.doors_dialects import dialects
from triplewire.bench.doors_hooks import webhooks
from triplewire.bench.doors_policies import Plan, measure
from triplewire.bench.doors_tokens import tokens
from triplewire.bench.machine import description, reference_ms

Say = Callable[[str], None]

PARTS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "tokens": tokens,
    "policies": lambda: measure(Plan()),
    "dialects": dialects,
    "webhooks": webhooks,
}
"""What is measured, by name; one after the other, so that none disturbs another."""


def run(parts: Sequence[str], say: Say) -> dict[str, Any]:
    """What each of the parts tells."""
    before, began = reference_ms(), time.perf_counter()
    report: dict[str, Any] = {}
    for name in parts:
        say(f"measuring {name}")
        report[name] = PARTS[name]()
    report["seconds"] = round(time.perf_counter() - began, 1)
    report["machine"] = {**description(), "reference_ms": [round(before), round(reference_ms())]}
    return report
