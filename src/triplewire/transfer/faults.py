"""Faults: what is wrong in a file that is brought in, and where."""

from __future__ import annotations

from dataclasses import dataclass, replace

from triplewire.model.errors import InputError

_SHOWN = 100


@dataclass(frozen=True)
class Fault:
    """A line, a statement, a row or an event that cannot be brought in. `line` counts from 1; in Parquet, rows."""

    line: int
    reason: str
    column: int | None = None
    text: bytes = b""
    """What stands there, to be put into the file of rejects."""

    def told(self, name: str) -> str:
        """For people: where, what is wrong, and below it what stands there."""
        place = f"{name}:{self.line}" if self.column is None else f"{name}:{self.line}:{self.column}"
        return f"{place}: {self.reason}" + (f"\n    {self._excerpt()}" if self.text.strip() else "")

    def _excerpt(self) -> str:
        line = self.text.strip(b"\r\n").partition(b"\n")[0].decode(errors="replace")
        start = max(0, (self.column or 1) - _SHOWN // 2) if len(line) > _SHOWN else 0
        cut = line[start : start + _SHOWN]
        shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in cut)
        return f"{'…' if start else ''}{shown}{'…' if start + _SHOWN < len(line) else ''}"


def fault_of(error: InputError, line: int, text: bytes) -> Fault:
    """What an error about a text says, whose first line has this number in the file."""
    reason = str(error)
    if error.place is None:
        return Fault(line, reason, text=text)
    # The place is told before the reason, and what stands there after it.
    reason = reason.partition(f", at {error.place}")[0]
    return Fault(line + error.place.line - 1, reason, error.place.column, text)


def moved(fault: Fault, lines: int) -> Fault:
    """The same some lines further up: where a text was read with something before it."""
    return replace(fault, line=fault.line - lines)
