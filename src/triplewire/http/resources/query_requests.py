"""Continuous query requests, validated field by field, and their query text, parsed and checked before registration.
Queries that differ only in constants are parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from triplewire.continuous.join_network.layout import SLOTS
from triplewire.continuous.structures import LiftedStructure, QueryStructure, lift_constants, query_structure
from triplewire.continuous.windows.plans import WindowPlan, plan_windows
from triplewire.http.openapi.documents import QueryRequestDocument
from triplewire.http.resources.bodies import (
    check_members,
    check_query_size,
    parse_choice,
    parse_printable,
    parse_stream,
)
from triplewire.http.resources.subscription_requests import BackfillStart
from triplewire.matching.prepared_queries import PreparedQueries
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.model.errors import BadRequest, InvalidField, Unsupported
from triplewire.model.subscriptions import LatePolicy, TimeDomain
from triplewire.sparql.algebra import Dataset
from triplewire.sparql.conjunctions import Bind
from triplewire.sparql.rspql import Registration, parse_registration
from triplewire.sparql.syntax.lexer import SourceText, Token, unsupported
from triplewire.sparql.syntax.windows import QUERY_WINDOW_DAYS, duration_microseconds
from triplewire.sparql.traversal import pattern_variables
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.subscriptions import SELECTOR_VALUES

UNBOUNDED_FIELDS = ("semantics", "streams", "within", "span", "from")
"""Members that only queries without windows may have."""
WINDOWED_FIELDS = ("time", "lateness", "late")
"""Members that only queries with windows may have."""

_BAG, _SET = "bag", "set"
_SECOND = 1_000_000
_SECONDS_MOST = QUERY_WINDOW_DAYS * 86_400
_SPAN_MOST = 2**53
_NUMBERS = ("within", "span", "lateness")


@dataclass(frozen=True)
class ContinuousQueryRequest:
    """A continuous query to register. Its text is not parsed yet."""

    text: str
    name: str | None = None
    distinct: bool = False
    streams: tuple[str, ...] | None = None
    within: float | None = None
    span: int | None = None
    begins: BackfillStart | None = None
    time: TimeDomain = TimeDomain.ARRIVAL
    lateness: float = 0.0
    late: LatePolicy = LatePolicy.DROP
    into: str | None = None
    given: frozenset[str] = frozenset()
    """The members that were given."""

    @classmethod
    def from_json(cls, value: object) -> ContinuousQueryRequest:
        """Raises BadRequest for anything but an object, InvalidField with the member that does not fit."""
        if not isinstance(value, dict):
            raise BadRequest('a continuous query is a JSON object such as {"query": "SELECT …"}')
        check_members(value, "a continuous query", QueryRequestDocument)
        begins = value.get("from")
        return cls(
            text=_parse_text(value.get("query")),
            name=None if value.get("name") is None else parse_printable("name", value["name"]),
            distinct=_parse_semantics(value.get("semantics")),
            streams=_parse_streams(value.get("streams")),
            within=_parse_seconds("within", value.get("within")),
            span=_parse_span(value.get("span")),
            begins=None if begins is None else BackfillStart.from_json(begins),
            time=parse_choice("time", value.get("time"), TimeDomain.ARRIVAL),
            lateness=_parse_seconds("lateness", value.get("lateness"), least=0.0) or 0.0,
            late=parse_choice("late", value.get("late"), LatePolicy.DROP),
            into=None if value.get("into") is None else parse_stream("into", value["into"]),
            given=frozenset(name for name in QueryRequestDocument.names() if value.get(name) is not None),
        )

    @classmethod
    def from_text(cls, text: str, parameters: Iterable[tuple[str, str]]) -> ContinuousQueryRequest:
        """A query whose text is the body; the other members are query parameters."""
        value: dict[str, Any] = {}
        for name, given in parameters:
            if name == "query":
                raise InvalidField("query", "the query is the body; it must not be a parameter")
            if name == "streams":
                value.setdefault(name, []).append(given)
            elif name in value:
                raise InvalidField(name, f"{name} is given twice; give it once")
            else:
                value[name] = _parse_number(given) if name in _NUMBERS else given
        return cls.from_json({**value, "query": text})


def _parse_number(text: str) -> object:
    """Parse a number as JSON would; a duration stays a text."""
    try:
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        return text


def _parse_text(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise InvalidField("query", "query must be the text of a query, in SPARQL or, with windows, in RSP-QL")
    return check_query_size(given)


def _parse_semantics(given: object) -> bool:
    if given not in (None, _BAG, _SET):
        raise InvalidField(
            "semantics",
            f"semantics must be {_BAG}, an answer for every combination of triples, or {_SET}, each answer once, "
            f"not {given!r}",
        )
    return given == _SET


def _parse_streams(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    named = [given] if isinstance(given, str) else given
    if not isinstance(named, list) or not named:
        raise InvalidField("streams", f"streams must be a list of names, not {given!r}")
    if len(named) > SELECTOR_VALUES:
        raise InvalidField("streams", f"streams lists {len(named)} names, over the limit of {SELECTOR_VALUES}")
    return tuple(sorted({parse_stream("streams", each) for each in named}))


def _parse_seconds(field: str, given: object, least: float = 0.001) -> float | None:
    """Raises InvalidField, also for more than a window may last."""
    if given is None:
        return None
    found: Decimal | float | None = None
    if isinstance(given, str):
        microseconds = duration_microseconds(given)
        found = None if microseconds is None else microseconds / _SECOND
    elif isinstance(given, int | float) and not isinstance(given, bool):
        found = given
    if found is None or not least <= found <= _SECONDS_MOST:
        accepted = f"seconds from {least:g} to {_SECONDS_MOST}, or a duration such as PT10M"
        raise InvalidField(field, f"{field} must be {accepted}, not {given!r}")
    return float(found)


def _parse_span(given: object) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= _SPAN_MOST:
        raise InvalidField("span", f"span must be a number of positions from 1 to {_SPAN_MOST}, not {given!r}")
    return given


@dataclass(frozen=True)
class LiftedText:
    """A query form (`select`, `ask` or `construct`) and structure, and its lifted constants."""

    shape: tuple[str, QueryStructure]
    constants: tuple[str, ...]

    @property
    def form(self) -> str:
        return self.shape[0]

    @property
    def lifted(self) -> LiftedStructure:
        return LiftedStructure(self.shape[1], self.constants)

    def of(self, constants: tuple[str, ...]) -> LiftedText:
        return LiftedText(self.shape, constants)


class StructureCache:
    """Lifts constants out of query texts, and caches structures. Any thread may use it."""

    def __init__(self) -> None:
        self._recipes = PreparedQueries(_lift_text)

    def take(self, text: str) -> LiftedText:
        """Lift a query without windows. Raises SparqlSyntax, or Unsupported with its position in the text."""
        return self._recipes.lift(ShapeRequest(text, solutions=True))


def _lift_text(asked: ShapeRequest) -> LiftedText:
    text = asked.text or ""
    registration = parse_registration(text)
    query = registration.query
    lifted = lift_constants(query_structure(registration, distinct=False))
    _check_structure(text, query.form, lifted)
    return LiftedText((query.form, lifted.structure), lifted.constants)


def _check_structure(text: str, form: str, lifted: LiftedStructure) -> None:
    """Raises Unsupported for an unbound variable, and for more terms than a partial match can hold."""
    structure = lifted.structure
    if form == "construct" and not structure.template:
        raise _unsupported_word(text, "construct", "its template is empty")
    matched = frozenset().union(*(pattern_variables(each) for each in structure.patterns))
    bound = matched | {each.name for each in structure.steps if isinstance(each, Bind)}
    used = (*structure.projection, *(name for each in structure.template for name in pattern_variables(each)))
    for name in used:
        if name not in bound and not name.startswith("_:"):
            raise _unsupported_word(text, f"?{name}", "it is in no pattern, so that it is never bound")
    held = len(matched) + len(lifted.constants)
    if held > SLOTS:
        raise Unsupported(f"more than {SLOTS} variables and constants ({held})", hint="ask for less at once")


def _unsupported_word(text: str, word: str, hint: str) -> Unsupported:
    """An error with the position of a word in the text."""
    source = SourceText(text)
    known = (each for each in source.tokens() if each.text.lower().lstrip("?$") == word.lower().lstrip("?"))
    offset = next((each.offset for each in known), 0)
    construct = word.upper() if word.isalpha() else word
    return Unsupported(construct, place=source.position(offset), hint=hint, excerpt=source.excerpt(offset))


_DATASET_NAME = re.compile(r"<.*/(streams|ontologies)/([A-Za-z0-9][A-Za-z0-9._~-]*)>")


def plan_registration(text: str, registration: Registration) -> WindowPlan:
    """Plan a query with windows. Raises Unsupported with its position in the text."""
    try:
        return plan_windows(text)
    except Unsupported as error:
        if error.place is not None:
            raise
        raise unsupported(f"function {error.construct}", registration.spans, str(error)) from None


def check_static_data(text: str, dataset: Dataset, registry: Registry, published: Callable[[str], bool]) -> None:
    """Raises InvalidField for an unknown stream or ontology outside of the windows."""
    for name in dict.fromkeys((*(dataset.default or ()), *(dataset.named or ()))):
        found = _DATASET_NAME.fullmatch(name)
        if found is None:
            continue
        kind, word = found[1], found[2]
        known = published(word) if kind == "streams" else registry.get(ONTOLOGY, word) is not None
        if not known:
            what = f"nothing was ever published to {word}" if kind == "streams" else f"there is no ontology {word}"
            raise error_at_word(text, what, lambda _, token: token.text == name)  # noqa: B023 - it is called at once


def unknown_stream(text: str, stream: str) -> InvalidField:
    """The error for a window over a stream that never had events."""
    named = re.compile(rf"<?(.*[/:])?{re.escape(stream)}>?")

    def is_it(on: Token, name: Token) -> bool:
        return on.key in ("ON", "STREAM") and named.fullmatch(name.text) is not None

    return error_at_word(text, f"nothing was ever published to {stream}, and no other query publishes to it", is_it)


def error_at_word(text: str, message: str, is_it: Callable[[Token, Token], bool]) -> InvalidField:
    """An error with the position of the first word for which `is_it(previous, word)` holds, if there is one."""
    source = SourceText(text)
    offset = next((token.offset for before, token in pairwise(source.tokens()) if is_it(before, token)), None)
    if offset is None:
        return InvalidField("query", message)
    return InvalidField("query", message, place=source.position(offset), excerpt=source.excerpt(offset))
