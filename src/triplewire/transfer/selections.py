"""Selections: which events of a lake go out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from triplewire.model.errors import BadRequest


@dataclass(frozen=True)
class Selection:
    """All events, or those that fit. Times, in microseconds, are when it happened: `begins <= time < ends`; positions
    lie in `after < position <= upto`."""

    streams: tuple[str, ...] = ()
    begins: int | None = None
    ends: int | None = None
    after: int = 0
    upto: int | None = None

    def __post_init__(self) -> None:
        if self.begins is not None and self.ends is not None and self.begins >= self.ends:
            raise BadRequest("--from must lie before --to: nothing can be between them")
        if self.upto is not None and self.after >= self.upto:
            raise BadRequest("--after must lie before --upto: nothing can be between them")

    def of(self, entries: pa.Table) -> pa.Table:
        """Those rows of a page that fit; positions were looked at when it was read."""
        wanted = [
            pc.field("stream").isin(list(self.streams)) if self.streams else None,
            pc.field("time") >= self.begins if self.begins is not None else None,
            pc.field("time") < self.ends if self.ends is not None else None,
        ]
        for each in wanted:
            entries = entries if each is None else entries.filter(each)
        return entries

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"streams": list(self.streams)}
