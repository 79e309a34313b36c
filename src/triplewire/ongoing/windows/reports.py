"""Reports: what of an answer is told, beside the one before it."""

from __future__ import annotations

from collections import Counter

from triplewire.model.subscriptions import ReportStrategy
from triplewire.ongoing.windows.evaluations import Rows


def reported(report: ReportStrategy, now: Rows, before: Rows) -> Rows:
    """As bags: a solution that is there twice and was there once is new once. In the order of the answer that has
    them."""
    match report:
        case ReportStrategy.ALL:
            return now
        case ReportStrategy.NEW:
            return _without(now, before)
        case ReportStrategy.OLD:
            return _without(before, now)


def _without(rows: Rows, others: Rows) -> Rows:
    left, kept = Counter(others), []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
        else:
            kept.append(row)
    return tuple(kept)
