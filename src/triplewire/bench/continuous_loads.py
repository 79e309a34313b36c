"""Loads of `bench continuous`: how evenly work is spread, beside what the paper on CQC and CSBV found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ADDRESSES = 20_000
"""Nodes of the network in the paper's experiment E1."""
PAPER = {"csbv": 19_779, "cqc": 2_685}
"""How many of them took part in query processing there: 100,000 questions, 600,000 triples."""


def spread(loads: Sequence[int]) -> dict[str, float]:
    """Relative standard deviation in percent, and the share of those with any load."""
    counts = np.asarray(loads, float)
    mean = float(counts.mean()) if len(counts) else 0.0
    return {
        "count": len(counts),
        "rsd_percent": round(100 * float(counts.std()) / mean, 1) if mean else 0.0,
        "share_at_work": round(float((counts > 0).mean()), 4) if len(counts) else 0.0,
    }


def loads(strategy: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """From what the pipeline told before and after: rows that each bucket received in between, and how many addresses
    were ever used."""
    came = np.asarray(after["loads"]) - np.asarray(before.get("loads") or np.zeros(len(after["loads"])))
    return {
        "buckets": spread(came.tolist()),
        "addresses": {
            "of": ADDRESSES,
            "at_work": after["addresses"],
            "share_at_work": round(after["addresses"] / ADDRESSES, 4),
            "paper_at_work": PAPER[strategy],
        },
    }
