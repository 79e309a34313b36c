"""Stream filters as values, and their parameters in the address of a stream, which are validated here, once.

    GET /streams/s?source=…&application=…&vocabulary=…&ask=…&filter=…&filter.name=…

Equal filters are one key of a live topic and are evaluated once, however many clients use them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from triplewire.http.openapi.stream_operations import STREAM_FILTER_VALUES
from triplewire.matching.canonical_form import ConstantSymmetries
from triplewire.matching.prepared_queries import build_query, lift_request
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.matching.shapes import LiftedShape
from triplewire.model.errors import BadRequest, SparqlSyntax
from triplewire.rdf.terms import HEADER_CHARACTERS
from triplewire.security.visibility import Visibility

FILTER_PARAMETERS: Final = 16
"""Parameters of a plug-in filter in one address."""

_PARAMETER_NAMES = ("source", "application", "vocabulary", "ask", "filter")
"""Parameters of an address that make up a stream filter."""


@dataclass(frozen=True)
class AskFilter:
    """An ASK query that events pass. Queries that differ only in the names of variables, or in layout, are equal."""

    shape: str
    """Key of the shape."""
    constants: tuple[str, ...]
    lifted: LiftedShape = field(compare=False, repr=False)


@dataclass(frozen=True)
class PluginCall:
    """The name of a plug-in filter and its parameters, in order."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class StreamFilter:
    """An event passes if it passes all fields. One of several values suffices; a field without values is passed by
    all. `vocabulary` has prefixes of IRIs: of some predicate or class of the event."""

    source: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    asks: tuple[AskFilter, ...] = ()
    plugin: PluginCall | None = None

    def __hash__(self) -> int:
        return self._hash

    @property
    def key(self) -> Hashable:
        """Value that is equal for equal filters, and holds no reference to them."""
        return self.source, self.application, self.vocabulary, self.asks, self.plugin

    @cached_property
    def _hash(self) -> int:
        """Hash, computed once: a filter is looked up in every pass, and may hold hundreds of texts."""
        return hash(self.key)


EVERYTHING = StreamFilter()


@dataclass(frozen=True)
class StreamView:
    """A stream as some clients get it: through a filter, and as far as it is visible to them; None is everything."""

    stream: str
    filter: StreamFilter | None = None
    visibility: Visibility | None = None
    query: str | None = None
    """Id of a continuous query, for its answers alone."""

    @property
    def asks(self) -> tuple[AskFilter, ...]:
        return () if self.filter is None else self.filter.asks

    @property
    def plugin(self) -> PluginCall | None:
        return None if self.filter is None else self.filter.plugin


_PREFIX = "filter."
_SIMILAR_LETTERS = 3
"""Letters from which on an unknown parameter counts as a misspelling."""
_NOT_IN_IRIS = frozenset('<>"{}|^`\\')
_SYMMETRIES = ConstantSymmetries()

Given = Mapping[str, Sequence[str]]
"""Values of each parameter, in order."""


def parse_stream_filter(query: Iterable[tuple[str, str]]) -> StreamFilter | None:
    """Return the filter that all parameters of an address ask for; None for everything.

    Parsing a query takes some milliseconds, and half a second the first time: call it from a thread if there is an
    `ask`. Raises BadRequest, which names the parameter, SparqlSyntax, with the line in the query, or Unsupported.
    """
    given = defaultdict[str, list[str]](list)
    for name, value in query:
        _check_name(name)
        given[name].append(value)
    parsed = StreamFilter(
        source=_parse_values("source", given["source"]),
        application=_parse_values("application", given["application"]),
        vocabulary=tuple(map(_check_iri_prefix, _parse_values("vocabulary", given["vocabulary"]))),
        asks=_parse_asks(given["ask"]),
        plugin=_parse_plugin_call(given),
    )
    return None if parsed == EVERYTHING else parsed


def _check_name(name: str) -> None:
    """Refuse a misspelt parameter, which would let everything through, unnoticed."""
    if name in _PARAMETER_NAMES or name.startswith(_PREFIX):
        return
    small = name.lower()
    for other in _PARAMETER_NAMES:
        if small.startswith(other) or (len(small) >= _SIMILAR_LETTERS and other.startswith(small)):
            known = f"{', '.join(_PARAMETER_NAMES)}, and {_PREFIX}… for parameters of a plug-in"
            raise BadRequest(f"there is no parameter {name}; a stream is filtered by {known}")


def _parse_values(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return each value once, sorted: filters with the same values are equal."""
    _check_count(name, given)
    for text in given:
        _check_text(name, text)
    return tuple(sorted(set(given)))


def _check_count(name: str, given: Sequence[str]) -> None:
    if len(given) > STREAM_FILTER_VALUES:
        raise BadRequest(f"the parameter {name} is given {len(given)} times, over the limit of {STREAM_FILTER_VALUES}")


def _check_text(name: str, text: str) -> None:
    if not text or len(text) > HEADER_CHARACTERS or not text.isprintable():
        accepted = f"printable text of 1 to {HEADER_CHARACTERS} characters"
        raise BadRequest(f"the parameter {name} is {accepted}, not {text!r}")


def _check_iri_prefix(text: str) -> str:
    if " " in text or not _NOT_IN_IRIS.isdisjoint(text) or ":" not in text:
        accepted = "the prefix of an IRI, in full and without angle brackets, such as http://example.org/ns#"
        raise BadRequest(f"the parameter vocabulary is {accepted}, not {text!r}")
    return text


def _parse_asks(given: Sequence[str]) -> tuple[AskFilter, ...]:
    _check_count("ask", given)
    return tuple(sorted(set(map(_parse_ask, given)), key=lambda each: (each.shape, each.constants)))


@lru_cache(maxsize=1_024)
def _parse_ask(text: str) -> AskFilter:
    """Parse a query; cached, since many clients use the same."""
    if not text.strip():
        raise BadRequest(
            "the parameter ask is an ASK query such as ASK { ?s <http://example.org/p> ?o }, not an empty text"
        )
    asked = ShapeRequest(text, solutions=False)
    try:
        form = build_query(asked).form
        if form != "ask":
            raise BadRequest(f"the parameter ask is an ASK query, not {form.upper()}; write ASK {{ … }}")
        lifted = _SYMMETRIES.sort_constants(lift_request(asked))
    except SparqlSyntax as error:
        raise SparqlSyntax(f"the parameter ask: {error}", place=error.place, excerpt=error.excerpt) from None
    return AskFilter(lifted.shape.key, lifted.constants, lifted)


def _parse_plugin_call(given: Given) -> PluginCall | None:
    names, parameters = given["filter"], _parse_plugin_parameters(given)
    if len(names) > 1:
        raise BadRequest(f"the parameter filter is given {len(names)} times; give it once")
    if not names:
        for name, _ in parameters:
            raise BadRequest(f"the parameter {_PREFIX}{name} needs filter=…, which is missing")
        return None
    _check_text("filter", names[0])
    return PluginCall(names[0], parameters)


def _parse_plugin_parameters(given: Given) -> tuple[tuple[str, str], ...]:
    names = sorted(name for name in given if name.startswith(_PREFIX))
    if len(names) > FILTER_PARAMETERS:
        raise BadRequest(f"there are {len(names)} parameters {_PREFIX}…, over the limit of {FILTER_PARAMETERS}")
    return tuple((name.removeprefix(_PREFIX), _single(name, given[name])) for name in names)


def _single(name: str, given: Iterable[str]) -> str:
    first, *others = given
    if not name.removeprefix(_PREFIX).isidentifier():
        raise BadRequest(f"{name!r} is no parameter of a filter: what follows {_PREFIX} is a word such as {_PREFIX}n")
    if others:
        raise BadRequest(f"the parameter {name} is given {1 + len(others)} times; give it once")
    _check_text(name, first)
    return first
