"""Options: what a program says about where events or quads come from, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from triplewire.config import limits
from triplewire.model import END, START, parse_position
from triplewire.model.errors import BadRequest
from triplewire.spark.schemas import SCHEMAS
from triplewire.storage.registry.streams import check_stream_name

KNOWN = (
    "path",
    "url",
    "token",
    "what",
    "columns",
    "stream",
    "after",
    "upto",
    "version",
    "as_of",
    "max_events",
    "fail_on_gap",
    "pushdown",
)
_TOKEN = 16
"""Characters of a position as the broker writes it; fewer are a number, as in the column `position`."""


@dataclass(frozen=True)
class Options:
    """Where to read, and what. `path` or `url` is set, never both."""

    path: str | None
    url: str | None
    what: str
    columns: tuple[str, ...]
    """None named: all."""
    stream: str | None = None
    after: int = START
    upto: int = END
    version: int | None = None
    as_of: datetime | None = None
    max_events: int = limits.BATCH_EVENTS
    """Positions in one batch of a stream."""
    fail_on_gap: bool = True
    """Whether a stream fails if events that it has not read are gone from the broker's log."""
    pushdown: bool = True
    """Whether filters are taken, for which the session must hand them down."""
    token: str | None = field(default=None, repr=False)
    """What is shown to a broker."""


def options_of(given: Mapping[str, str]) -> Options:
    """Raises BadRequest, which names the option and what would be right."""
    said = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(set(said) - set(KNOWN)):
        raise BadRequest(f"the option {', '.join(unknown)} is not known; there are {', '.join(KNOWN)}")
    _check_place(said)
    return Options(
        path=said.get("path"),
        url=said.get("url"),
        what=_chosen(said, "what", "events", tuple(SCHEMAS)),
        columns=tuple(name.strip() for name in said.get("columns", "").split(",") if name.strip()),
        stream=check_stream_name(said["stream"]) if "stream" in said else None,
        after=_position(said, "after", START),
        upto=_position(said, "upto", END),
        version=_number(said, "version") if "version" in said else None,
        as_of=_time(said["as_of"]) if "as_of" in said else None,
        max_events=_number(said, "max_events", 1) if "max_events" in said else limits.BATCH_EVENTS,
        fail_on_gap=_chosen(said, "fail_on_gap", "true", ("true", "false")) == "true",
        pushdown=_chosen(said, "pushdown", "true", ("true", "false")) == "true",
        token=said.get("token"),
    )


def _check_place(said: Mapping[str, str]) -> None:
    places = [name for name in ("path", "url") if name in said]
    if len(places) != 1:
        given = "both are given" if places else "neither is given"
        raise BadRequest(f"give path, a lake, or url, a running broker: {given}")
    if "url" in said and (both := [name for name in ("version", "as_of") if name in said]):
        raise BadRequest(f"{both[0]} goes with path: a broker has no versions, the lake does")
    if "path" in said and "token" in said:
        raise BadRequest("token goes with url: a lake is read as files, and asks for none")


def _chosen(said: Mapping[str, str], name: str, default: str, choices: tuple[str, ...]) -> str:
    value = said.get(name, default).lower()
    if value not in choices:
        raise BadRequest(f"{name} must be {' or '.join(choices)}, not {said[name]!r}")
    return value


def _number(said: Mapping[str, str], name: str, least: int = 0) -> int:
    if not said[name].isdecimal() or int(said[name]) < least:
        raise BadRequest(f"{name} must be a whole number from {least} on, not {said[name]!r}")
    return int(said[name])


def _position(said: Mapping[str, str], name: str, default: int) -> int:
    text = said.get(name)
    if text is None:
        return default
    return int(text) if text.isdecimal() and len(text) < _TOKEN else parse_position(text)


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(f"as_of must be an ISO 8601 time, such as 2026-11-16T08:30:00Z, not {text!r}") from None
