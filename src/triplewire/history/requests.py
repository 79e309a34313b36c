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
"""The formats of EXPLAIN, with their media types."""


@dataclass(frozen=True)
class QueryLimits:
    seconds: float = QUERY_SECONDS
    memory: str = QUERY_MEMORY
    rows: int = QUERY_ROWS
    bytes: int = ANSWER_BYTES

    @classmethod
    def from_settings(cls, settings: Settings) -> QueryLimits:
        return cls(settings.query_seconds, settings.query_memory, settings.query_rows)

    def within(self, seconds: float | None) -> QueryLimits:
        """Return these limits, with less time if less is requested."""
        return self if seconds is None else replace(self, seconds=min(self.seconds, seconds))


@dataclass(frozen=True)
class HistoryRequest:
    """A query with its options; None leaves the choice to the query or to the broker.

    `default_graphs` and `named_graphs` are IRIs; if either is given, both replace the dataset of the query. `format`
    takes precedence over `accept`.
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
    """Return the plan and its profile in place of the answer: as `text` or as `json`."""
    version: int | None = None
    as_of: str | None = None
    """An older version of the lake, by number or by time: ISO 8601 with a zone."""
    visibility: Visibility | None = None
    """The quads that the client may see; None is all."""

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
    def lake_version(self) -> VersionOrTime | None:
        """The version of the lake, or its time; None for the newest."""
        return self.version if self.as_of is None else _parse_instant(self.as_of)

    def to_json(self) -> dict[str, Any]:
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return fields if self.visibility is None else {**fields, "visibility": self.visibility.to_json()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> HistoryRequest:
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        if "visibility" in given:
            given["visibility"] = Visibility.from_json(given["visibility"])
        return cls(**given)


def _parse_instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise BadRequest(f"as_of must be a time with a zone, like 2026-11-16T10:00:00Z, not {text!r}")
    return found
