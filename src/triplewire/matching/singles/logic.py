"""Logic: `&&` and `||` with the errors that SPARQL wants. None is an error."""

from __future__ import annotations

from collections.abc import Sequence

from triplewire.matching.singles.facts import Undecided
from triplewire.matching.singles.runs import Row, Run, Test


def conjoined(tests: Sequence[Test]) -> Test:
    """One that is false decides, whatever the others are."""
    return _joined(tests, deciding=False)


def disjoined(tests: Sequence[Test]) -> Test:
    """One that is true decides."""
    return _joined(tests, deciding=True)


def _joined(tests: Sequence[Test], *, deciding: bool) -> Test:
    def found(run: Run, row: Row) -> bool | None:
        result: bool | None = not deciding
        unsure = None
        for test in tests:
            try:
                held = test(run, row)
            except Undecided as error:
                if run.left < 0:
                    raise
                unsure = error
                continue
            if held is deciding:
                return deciding
            if held is None:
                result = None
        if unsure is not None:
            raise unsure
        return result

    return found
