"""Windows: what a continuous query says of the pieces of streams that it is asked of, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["time", "count", "session"]


@dataclass(frozen=True)
class WindowClause:
    """One window over one stream: of time, in microseconds; of a number of triples; or of a session, which goes on
    until nothing came for `range` microseconds.

    A new one opens after each `step`; the step of a session is its range. Equal to the range, windows tumble; smaller,
    they slide; larger, they leave gaps, and what falls into these counts for none.
    """

    name: str
    stream: str
    kind: Kind
    range: int
    step: int
