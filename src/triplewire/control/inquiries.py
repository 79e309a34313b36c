"""Inquiries: what a client asks for when it registers a continuous query, checked field by field."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from triplewire.config import limits
from triplewire.control.beginnings import Beginning
from triplewire.model.errors import BadRequest, BodyTooLarge, InvalidField
from triplewire.model.subscriptions import LatePolicy, TimeDomain
from triplewire.sparql.syntax.windows import duration_microseconds
from triplewire.storage.registry.streams import check_stream_name

UNBOUNDED = ("semantics", "streams", "within", "span", "from")
"""What is said of queries without windows."""
WINDOWED = ("time", "lateness", "late")
"""What is said of windows."""
FIELDS = ("query", "name", *UNBOUNDED, *WINDOWED, "into")

_BAG, _SET = "bag", "set"
_SECOND = 1_000_000
_MOST = limits.QUERY_WINDOW_DAYS * 86_400
_SPAN = 2**53
_NUMBERS = ("within", "span", "lateness")

Choice = TypeVar("Choice", LatePolicy, TimeDomain)


@dataclass(frozen=True)
class Inquiry:
    """Checked, but for what the query says, and what then fits beside it."""

    text: str
    name: str | None = None
    distinct: bool = False
    streams: tuple[str, ...] | None = None
    within: float | None = None
    span: int | None = None
    begins: Beginning | None = None
    time: TimeDomain = TimeDomain.ARRIVAL
    lateness: float = 0.0
    late: LatePolicy = LatePolicy.DROP
    into: str | None = None
    given: frozenset[str] = frozenset()
    """The fields that were there."""

    @classmethod
    def from_json(cls, value: object) -> Inquiry:
        """Raises BadRequest for what is no object, Unfit for a field that does not fit, with its name."""
        if not isinstance(value, dict):
            raise BadRequest('a continuous query is a JSON object such as {"query": "SELECT …"}')
        for field in value:
            if field not in FIELDS:
                raise InvalidField(field, f"a continuous query has no {field}; it has {', '.join(FIELDS)}")
        begins = value.get("from")
        return cls(
            text=_text(value.get("query")),
            name=_name(value.get("name")),
            distinct=_distinct(value.get("semantics")),
            streams=_streams(value.get("streams")),
            within=_seconds("within", value.get("within")),
            span=_span(value.get("span")),
            begins=None if begins is None else Beginning.from_json(begins),
            time=_one_of("time", value.get("time"), TimeDomain.ARRIVAL),
            lateness=_seconds("lateness", value.get("lateness"), least=0.0) or 0.0,
            late=_one_of("late", value.get("late"), LatePolicy.DROP),
            into=None if value.get("into") is None else _stream("into", value["into"]),
            given=frozenset(name for name in FIELDS if value.get(name) is not None),
        )

    @classmethod
    def from_text(cls, text: str, parameters: Iterable[tuple[str, str]]) -> Inquiry:
        """A query that is a body by itself; what is said beside it is in the address."""
        value: dict[str, Any] = {}
        for name, given in parameters:
            if name == "query":
                raise InvalidField("query", "the query is the body; it is not said in the address")
            if name == "streams":
                value.setdefault(name, []).append(given)
            elif name in value:
                raise InvalidField(name, f"{name} is given twice; give it once")
            else:
                value[name] = _number(given) if name in _NUMBERS else given
        return cls.from_json({**value, "query": text})


def _number(text: str) -> object:
    """Numbers as JSON has them; durations stay what they are."""
    try:
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        return text


def _text(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidField("query", "query must hold the text of a query, in SPARQL or, with windows, in RSP-QL")
    if len(given) * 4 > limits.QUERY_BYTES and len(given.encode(errors="replace")) > limits.QUERY_BYTES:
        raise BodyTooLarge("the query", limits.QUERY_BYTES)
    return given


def _name(given: object) -> str | None:
    if given is None:
        return None
    most = limits.HEADER_CHARACTERS
    if not isinstance(given, str) or not given or len(given) > most or not given.isprintable():
        raise InvalidField("name", f"name is printable text of 1 to {most} characters, not {given!r}")
    return given


def _distinct(given: object) -> bool:
    if given not in (None, _BAG, _SET):
        raise InvalidField(
            "semantics",
            f"semantics must be {_BAG}, an answer for every combination of triples, or {_SET}, each answer once, "
            f"not {given!r}",
        )
    return given == _SET


def _streams(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not named:
        raise InvalidField("streams", f"streams must be a list of names, not {given!r}")
    if len(named) > limits.NARROWING_VALUES:
        raise InvalidField("streams", f"streams lists {len(named)} names, over the limit of {limits.NARROWING_VALUES}")
    return tuple(sorted({_stream("streams", each) for each in named}))


def _stream(field: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidField(field, f"{field} must name a stream, not {given!r}")
    try:
        return check_stream_name(given)
    except BadRequest as error:
        raise InvalidField(field, str(error)) from None


def _seconds(field: str, given: object, least: float = 0.001) -> float | None:
    """Raises Unfit, also for more than a window may last: what never ends is never told."""
    if given is None:
        return None
    found: Decimal | float | None = None
    if isinstance(given, str):
        told = duration_microseconds(given)
        found = None if told is None else told / _SECOND
    elif isinstance(given, int | float) and not isinstance(given, bool):
        found = given
    if found is None or not least <= found <= _MOST:
        accepted = f"seconds from {least:g} to {_MOST}, or a duration such as PT10M"
        raise InvalidField(field, f"{field} must be {accepted}, not {given!r}")
    return float(found)


def _span(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= _SPAN:
        raise InvalidField("span", f"span must be a number of positions from 1 to {_SPAN}, not {given!r}")
    return given


def _one_of(field: str, given: object, default: Choice) -> Choice:
    if given is None:
        return default
    known: Mapping[str, Choice] = {each.value: each for each in type(default)}
    if not isinstance(given, str) or given not in known:
        raise InvalidField(field, f"{field} must be one of {', '.join(known)}, not {given!r}")
    return known[given]
