"""Requests: one query with everything that was said about how it is to be answered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from triplewire.config import Settings, limits
from triplewire.errors import BadRequest

EngineName: TypeAlias = Literal["auto", "duckdb", "spark"]
ENGINES: tuple[str, ...] = get_args(EngineName)
EXPLANATIONS = {"text": "text/plain; charset=utf-8", "json": "application/json"}
"""The forms of an explanation, with their media types."""


@dataclass(frozen=True)
class Bounds:
    """What one query may use before it is ended."""

    seconds: float = limits.QUERY_SECONDS
    memory: str = limits.QUERY_MEMORY
    rows: int = limits.QUERY_ROWS
    bytes: int = limits.ANSWER_BYTES

    @classmethod
    def from_settings(cls, settings: Settings) -> Bounds:
        return cls(settings.query_seconds, settings.query_memory, settings.query_rows)

    def within(self, seconds: float | None) -> Bounds:
        """These, with less time if less is wished for."""
        return self if seconds is None else replace(self, seconds=min(self.seconds, seconds))


@dataclass(frozen=True)
class QueryRequest:
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

    def __post_init__(self) -> None:
        if self.explain not in (None, *EXPLANATIONS):
            raise BadRequest(f"explain must be {' or '.join(EXPLANATIONS)}, not {self.explain!r}")
        if self.engine not in ENGINES:
            raise BadRequest(f"the engine {self.engine!r} is not known; there are {', '.join(ENGINES)}")
        if self.seconds is not None and not 0 < self.seconds < float("inf"):
            raise BadRequest(f"the timeout must be a number of seconds above 0, not {self.seconds:g}")

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> QueryRequest:
        """What `to_json` made."""
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
        }
        return cls(**given)
