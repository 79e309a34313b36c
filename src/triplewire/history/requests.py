"""A history request is one SPARQL query with its options and resource limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from triplewire.config import Settings
from triplewire.config.settings import QUERY_MEMORY, QUERY_ROWS, QUERY_SECONDS
from triplewire.model.errors import BadRequest
from triplewire.security import Visibility
from triplewire.storage.lake.ports import VersionOrTime

ANSWER_BYTES: Final = 1024**3
"""Bytes in the answer of one SPARQL query over history: a million rows of a kilobyte."""


EngineName: TypeAlias = Literal["auto", "duckdb", "spark"]
ENGINES: tuple[str, ...] = get_args(EngineName)
EXPLAIN_FORMATS = {"text": "text/plain; charset=utf-8", "json": "application/json"}
"""The forms of an explanation, with their media types."""


@dataclass(frozen=True)
class QueryLimits:
    """What one query may use before it is ended."""

    seconds: float = QUERY_SECONDS
    memory: str = QUERY_MEMORY
    rows: int = QUERY_ROWS
    bytes: int = ANSWER_BYTES

    @classmethod
    def from_settings(cls, settings: Settings) -> QueryLimits:
        return cls(settings.query_seconds, settings.query_memory, settings.query_rows)

    def within(self, seconds: float | None) -> QueryLimits:
        """These, with less time if less is wished for."""
        return self if seconds is None else replace(self, seconds=min(self.seconds, seconds))


@dataclass(frozen=True)
class HistoryRequest:
    """A query. What is None was not said, and is up to the query or to us.

    `default_graphs` and `named_graphs` are addresses; if either is given, both replace what the query says of its
    dataset. `format` goes before `accept`.
    """

    text: str
    accept: str | None = None
    format: str | None = None
    default_graphs: tuple[str, ...] | None = None
    named_graphs: tuple[str, ...] | None = None
    engine: str = "auto"
    seconds: float | None = None
    entailment: str | None = None
    explain: str | None = None
    """Not the answer is wanted, but how it is found: as `text` or as `json`."""
    version: int | None = None
    as_of: str | None = None
    """On the lake as it was, at one of its versions or at a time: ISO 8601 with a zone."""
    sight: Visibility | None = None
    """What whoever asks sees; None is everything."""

    def __post_init__(self) -> None:
        if self.explain not in (None, *EXPLAIN_FORMATS):
            raise BadRequest(f"explain must be {' or '.join(EXPLAIN_FORMATS)}, not {self.explain!r}")
        if self.engine not in ENGINES:
            raise BadRequest(f"the engine {self.engine!r} is not known; there are {', '.join(ENGINES)}")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise BadRequest(f"the timeout must be a number of seconds above 0, not {self.seconds:g}")
        if self.version is not None and self.version < 0:
            raise BadRequest(f"the version must be 0 or more, not {self.version}")
        if self.version is not None and self.as_of is not None:
            raise BadRequest("give version or as_of, not both")
        if self.as_of is not None:
            _parse_instant(self.as_of)

    @property
    def moment(self) -> VersionOrTime | None:
        """Of the lake that is asked; None for now."""
        return self.version if self.as_of is None else _parse_instant(self.as_of)

    def to_json(self) -> dict[str, Any]:
        made = {name: value for name, value in asdict(self).items() if value is not None}
        return made if self.sight is None else {**made, "sight": self.sight.to_json()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> HistoryRequest:
        """What `to_json` made."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        if "sight" in given:
            given["sight"] = Visibility.from_json(given["sight"])
        return cls(**given)


def _parse_instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise BadRequest(f"as_of must be a time with a zone, like 2026-11-16T10:00:00Z, not {text!r}")
    return found
