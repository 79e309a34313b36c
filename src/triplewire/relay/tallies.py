"""Tallies: what a strand has done so far, and how it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from triplewire.relay.strands import Strand

State = Literal["connecting", "listening", "waiting", "refused"]


@dataclass
class Tally:
    """Counts from the start of the process on. `changed` is called after each change that somebody may want to see."""

    strand: Strand
    state: State = "connecting"
    position: str | None = None
    """Of the edge above; everything up to it is below."""
    events: int = 0
    batches: int = 0
    loops: int = 0
    """Events that had been in the target stream before, and were left out."""
    far: int = 0
    """Events with too many stations behind them, which were left out."""
    gaps: int = 0
    refused: int = 0
    """Events that the edge below does not take."""
    breaks: int = 0
    """Times that either side was not there."""
    trouble: str | None = None
    """The last of them, while it lasts."""
    changed: Callable[[], None] = field(default=lambda: None, repr=False)

    def turn(self, state: State, trouble: str | None = None) -> None:
        self.state, self.trouble = state, trouble
        self.changed()

    def document(self) -> dict[str, Any]:
        counts = ("state", "position", "events", "batches", "loops", "far", "gaps", "refused", "breaks", "trouble")
        said = {name: getattr(self, name) for name in counts}
        return {"from": str(self.strand.source), "to": str(self.strand.target), **said}
