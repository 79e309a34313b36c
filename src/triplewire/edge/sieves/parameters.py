"""Parameters: how the address of a stream says what is to be heard of it, checked once, here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from triplewire.config import limits
from triplewire.edge.sieves.sieves import EVERYTHING, FIELDS, Ask, Chosen, Sieve
from triplewire.matching.canonical_form import ConstantSymmetries
from triplewire.matching.prepared_queries import build_query, lift_request
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.model.errors import BadRequest, SparqlSyntax

_PREFIX = "filter."
_TELLING = 3
"""Letters from which on a parameter counts as meant to be one of ours."""
_NOT_IN_IRIS = frozenset('<>"{}|^`\\')
_SYMMETRIES = ConstantSymmetries()

Given = Mapping[str, Sequence[str]]
"""The values of each parameter, in order."""


def sieve_of(query: Iterable[tuple[str, str]]) -> Sieve | None:
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
    sieve = Sieve(
        source=_several("source", given["source"]),
        application=_several("application", given["application"]),
        vocabulary=tuple(map(_beginning, _several("vocabulary", given["vocabulary"]))),
        asks=_asks(given["ask"]),
        filter=_chosen(given),
    )
    return None if sieve == EVERYTHING else sieve


def _check_name(name: str) -> None:
    """A parameter that is nearly one of ours would otherwise let everything through, unnoticed."""
    if name in FIELDS or name.startswith(_PREFIX):
        return
    small = name.lower()
    for field in FIELDS:
        if small.startswith(field) or (len(small) >= _TELLING and field.startswith(small)):
            known = f"{', '.join(FIELDS)}, and {_PREFIX}… for what a filter takes"
            raise BadRequest(f"there is no parameter {name}; what is told of a stream is said with {known}")


def _several(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Each once, in order: who lists the same ones asks the same."""
    if len(given) > limits.SIEVE_VALUES:
        raise BadRequest(f"the parameter {name} is given {len(given)} times, over the limit of {limits.SIEVE_VALUES}")
    for text in given:
        _check_text(name, text)
    return tuple(sorted(set(given)))


def _check_text(name: str, text: str) -> None:
    if not text or len(text) > limits.HEADER_CHARACTERS or not text.isprintable():
        accepted = f"printable text of 1 to {limits.HEADER_CHARACTERS} characters"
        raise BadRequest(f"the parameter {name} is {accepted}, not {text!r}")


def _beginning(text: str) -> str:
    if " " in text or not _NOT_IN_IRIS.isdisjoint(text) or ":" not in text:
        accepted = "the beginning of an IRI, written out and without angle brackets, such as http://example.org/ns#"
        raise BadRequest(f"the parameter vocabulary is {accepted}, not {text!r}")
    return text


def _asks(given: Sequence[str]) -> tuple[Ask, ...]:
    if len(given) > limits.SIEVE_VALUES:
        raise BadRequest(f"the parameter ask is given {len(given)} times, over the limit of {limits.SIEVE_VALUES}")
    found = {_ask(text): None for text in given}
    return tuple(sorted(found, key=lambda each: (each.shape, each.constants)))


@lru_cache(maxsize=1_024)
def _ask(text: str) -> Ask:
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
    return Ask(lifted.shape.key, lifted.constants, lifted)


def _chosen(given: Given) -> Chosen | None:
    names, parameters = given["filter"], _parameters(given)
    if len(names) > 1:
        raise BadRequest(f"the parameter filter is given {len(names)} times; one filter can be named")
    if not names:
        for name, _ in parameters:
            raise BadRequest(f"the parameter {_PREFIX}{name} stands beside filter=…, which is not there")
        return None
    _check_text("filter", names[0])
    return Chosen(names[0], parameters)


def _parameters(given: Given) -> tuple[tuple[str, str], ...]:
    names = sorted(name for name in given if name.startswith(_PREFIX))
    if len(names) > limits.FILTER_PARAMETERS:
        raise BadRequest(f"there are {len(names)} parameters {_PREFIX}…, over the limit of {limits.FILTER_PARAMETERS}")
    return tuple((name.removeprefix(_PREFIX), _single(name, given[name])) for name in names)


def _single(name: str, given: Iterable[str]) -> str:
    first, *others = given
    if not name.removeprefix(_PREFIX).isidentifier():
        raise BadRequest(f"{name!r} is no parameter of a filter: what follows {_PREFIX} is a word such as {_PREFIX}n")
    if others:
        raise BadRequest(f"the parameter {name} is given {1 + len(others)} times; give it once")
    _check_text(name, first)
    return first
