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
"""Parameters of a deployment's filter in one address."""


# ```
# GET /streams/s?source=…&application=…&vocabulary=…&ask=…&filter=…&filter.name=…
# ```
#
# They are values: two that ask for the same are equal, so that they are one key of a room and are evaluated once,
# however many listen.

_PARAMETER_NAMES = ("source", "application", "vocabulary", "ask", "filter")
"""The parameters of an address that make up a sieve."""


@dataclass(frozen=True)
class AskFilter:
    """A query that an event passes if it has a solution on it. Those that ask the same are equal, whatever their words
    and the names of their variables."""

    shape: str
    """Its key."""
    constants: tuple[str, ...]
    lifted: LiftedShape = field(compare=False, repr=False)


@dataclass(frozen=True)
class PluginCall:
    """A filter of the deployment, by its name, with the parameters that it is made with, in order."""

    name: str
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class StreamFilter:
    """An event passes if it passes all that is said. Of several values any will do; a field without values says
    nothing. `vocabulary` has beginnings of IRIs: of some predicate or class of the event."""

    source: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    vocabulary: tuple[str, ...] = ()
    asks: tuple[AskFilter, ...] = ()
    filter: PluginCall | None = None

    def __hash__(self) -> int:
        return self._hash

    @property
    def key(self) -> Hashable:
        """The same for equal ones, and nothing that holds them."""
        return self.source, self.application, self.vocabulary, self.asks, self.filter

    @cached_property
    def _hash(self) -> int:
        """It is looked up in every pass, and may hold hundreds of texts."""
        return hash(self.key)


EVERYTHING = StreamFilter()


@dataclass(frozen=True)
class StreamView:
    """What listeners to a stream have in common: the stream, what they want to hear of it, and what of it they see;
    None is all."""

    stream: str
    sieve: StreamFilter | None = None
    sight: Visibility | None = None
    query: str | None = None
    """The continuous query of which they hear the answers alone, by its id."""


# Parameters: how the address of a stream says what is to be heard of it, checked once, here.

_PREFIX = "filter."
_SIMILAR_LETTERS = 3
"""Letters from which on a parameter counts as meant to be one of ours."""
_NOT_IN_IRIS = frozenset('<>"{}|^`\\')
_SYMMETRIES = ConstantSymmetries()

Given = Mapping[str, Sequence[str]]
"""The values of each parameter, in order."""


def parse_stream_filter(query: Iterable[tuple[str, str]]) -> StreamFilter | None:
    """What the parameters of an address ask for, all of which are given, those that are not about this, too; None for
    everything.

    A query has to be parsed, which takes some milliseconds, and half a second where none was parsed before: call it
    from a thread where there is an `ask`. Raises BadRequest, which names the parameter, SparqlSyntax, with the place
    in the query, or Unsupported.
    """
    given = defaultdict[str, list[str]](list)
    for name, value in query:
        _check_name(name)
        given[name].append(value)
    sieve = StreamFilter(
        source=_parse_values("source", given["source"]),
        application=_parse_values("application", given["application"]),
        vocabulary=tuple(map(_check_iri_prefix, _parse_values("vocabulary", given["vocabulary"]))),
        asks=_parse_asks(given["ask"]),
        filter=_parse_plugin_call(given),
    )
    return None if sieve == EVERYTHING else sieve


def _check_name(name: str) -> None:
    """A parameter that is nearly one of ours would otherwise let everything through, unnoticed."""
    if name in _PARAMETER_NAMES or name.startswith(_PREFIX):
        return
    small = name.lower()
    for other in _PARAMETER_NAMES:
        if small.startswith(other) or (len(small) >= _SIMILAR_LETTERS and other.startswith(small)):
            known = f"{', '.join(_PARAMETER_NAMES)}, and {_PREFIX}… for what a filter takes"
            raise BadRequest(f"there is no parameter {name}; what is told of a stream is said with {known}")


def _parse_values(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Each once, in order: who lists the same ones asks the same."""
    if len(given) > STREAM_FILTER_VALUES:
        raise BadRequest(f"the parameter {name} is given {len(given)} times, over the limit of {STREAM_FILTER_VALUES}")
    for text in given:
        _check_text(name, text)
    return tuple(sorted(set(given)))


def _check_text(name: str, text: str) -> None:
    if not text or len(text) > HEADER_CHARACTERS or not text.isprintable():
        accepted = f"printable text of 1 to {HEADER_CHARACTERS} characters"
        raise BadRequest(f"the parameter {name} is {accepted}, not {text!r}")


def _check_iri_prefix(text: str) -> str:
    if " " in text or not _NOT_IN_IRIS.isdisjoint(text) or ":" not in text:
        accepted = "the beginning of an IRI, written out and without angle brackets, such as http://example.org/ns#"
        raise BadRequest(f"the parameter vocabulary is {accepted}, not {text!r}")
    return text


def _parse_asks(given: Sequence[str]) -> tuple[AskFilter, ...]:
    if len(given) > STREAM_FILTER_VALUES:
        raise BadRequest(f"the parameter ask is given {len(given)} times, over the limit of {STREAM_FILTER_VALUES}")
    found = {_parse_ask(text): None for text in given}
    return tuple(sorted(found, key=lambda each: (each.shape, each.constants)))


@lru_cache(maxsize=1_024)
def _parse_ask(text: str) -> AskFilter:
    """Remembered: clients of one kind come with the same query, many at a time."""
    if not text.strip():
        raise BadRequest("the parameter ask is an ASK query such as ASK { ?s <http://example.org/p> ?o }, not nothing")
    asked = ShapeRequest(text, solutions=False)
    try:
        form = build_query(asked).form
        if form != "ask":
            raise BadRequest(f"the parameter ask is an ASK query, not {form.upper()}; write ASK {{ … }}")
        lifted = _SYMMETRIES.settled(lift_request(asked))
    except SparqlSyntax as error:
        raise SparqlSyntax(f"the parameter ask: {error}", place=error.place, excerpt=error.excerpt) from None
    return AskFilter(lifted.shape.key, lifted.constants, lifted)


def _parse_plugin_call(given: Given) -> PluginCall | None:
    names, parameters = given["filter"], _parse_plugin_parameters(given)
    if len(names) > 1:
        raise BadRequest(f"the parameter filter is given {len(names)} times; one filter can be named")
    if not names:
        for name, _ in parameters:
            raise BadRequest(f"the parameter {_PREFIX}{name} stands beside filter=…, which is not there")
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
