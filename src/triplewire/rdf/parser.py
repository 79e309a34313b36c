"""The RDF parser: a body becomes events.

The RDF library's parser feeds its serializer, so that only canonical N-Quads text comes back, which one regular
expression takes apart. `docs/decisions` has the measurements.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Final

import pyoxigraph as ox

from triplewire.model import Event, EventHeaders
from triplewire.model.errors import BadRequest, BodyTooLarge, InputError, MalformedRdf
from triplewire.rdf import terms
from triplewire.rdf.checks import EXPANDED_BYTES, IRI_CHARACTERS, check_depth, describe_syntax_error
from triplewire.rdf.headers import NO_HEADER_VALUES, HeaderValues, make_headers, parse_headers
from triplewire.rdf.syntaxes import Syntax
from triplewire.rdf.terms import HEADER_CHARACTERS, skolemize

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

EVENT_QUADS: Final = 100_000
"""Quads in one event. An event is matched whole in one worker; self-joins inside it may grow as the square."""


_QUAD = re.compile(r'([^ ]+) ([^ ]+) ("[^"\\]*(?:\\.[^"\\]*)*"[^ ]*|<<\(.*\)>>|[^ ]+)(?: ([^ .][^ ]*))? \.\n')
"""A line of canonical N-Quads: subject, predicate, object, and perhaps a graph."""

_LONG = re.compile(rf'(?:<|"@)[^<>"\s]{{{IRI_CHARACTERS}}}')
"""A candidate for an IRI or a language tag that is too long; it may be part of a literal."""

_NO_HEADERS = EventHeaders()

_BLOCK = 10_000
"""Quads that are split at once: enough to make a call cheap, few enough to keep its strings small."""

_Graphs = dict[str, dict[str, None]]
"""Lines `subject⇥predicate⇥object` by graph, both in order of first appearance; "" is the default graph."""


def decode(
    body: bytes,
    syntax: Syntax,
    headers: EventHeaders = _NO_HEADERS,
    *,
    event_id: str | None = None,
    base_iri: str | None = None,
    new_id: Callable[[], str] = terms.new_id,
) -> list[Event]:
    """Parse a body to events, in order of first appearance; their quads in the publisher's order, without duplicates.

    Each named graph is one event with the graph's IRI as its id. Quads outside of a named graph are one event too,
    with `event_id` or a new id, and so are those of a graph named by a blank node. Blank nodes become IRIs.

    Raises MalformedRdf, with the position, for a syntax error and for a body without quads; BadRequest for an
    `event_id` or `base_iri` that is not an IRI or does not fit the body; InputError for a body over a limit.
    """
    body = body.removeprefix(BOM_UTF8)
    if event_id is not None:
        terms.check_id(event_id)
    graphs = _graphs(body, syntax, base_iri)
    if not graphs:
        raise MalformedRdf(f"the {syntax.name} body holds no quads; an event has at least one")
    names = _names(graphs, event_id, new_id)
    headers = replace(headers, syntax=syntax.media_type)
    return list(_events(graphs, names, headers))


def decode_message(
    body: bytes, syntax: Syntax, headers: EventHeaders = _NO_HEADERS, *, new_id: Callable[[], str] = terms.new_id
) -> list[Event]:
    """Parse a message to events, perhaps none, as `decode` does.

    If all triples outside of graphs are headers of its events, they become their headers.
    """
    graphs = _graphs(body, syntax, None)
    given = _take_headers(graphs)
    found = _events(graphs, _names(graphs, None, new_id), replace(headers, syntax=syntax.media_type))
    return [_with_headers(event, given[event.id])[1] if event.id in given else event for event in found]


def _take_headers(graphs: _Graphs) -> Mapping[str, HeaderValues]:
    """Remove the default graph and return its headers, if it holds nothing else."""
    if len(graphs) < 2 or "" not in graphs:
        return {}
    try:
        given = parse_headers(graphs[""])
    except BadRequest:
        return {}
    if any(f"<{id}>" not in graphs for id in given):
        return {}
    del graphs[""]
    return given


def decode_addressed(body: bytes, syntax: Syntax) -> list[tuple[HeaderValues, Event]]:
    """Parse a body to events, each with the headers that the triples outside of graphs give it.

    Raises what `decode` raises, and BadRequest for a triple outside of graphs that is not a header of one of its
    events, and for a graph named by a blank node.
    """
    graphs = _graphs(body.removeprefix(BOM_UTF8), syntax, None)
    given = parse_headers(graphs.pop("", ()))
    names = {graph: graph for graph in graphs}
    if stray := next((f"the header of {id}" for id in given if f"<{id}>" not in graphs), None):
        raise BadRequest(f"{stray} belongs to no event of the body")
    if nameless := next((graph for graph in graphs if not graph.startswith("<")), None):
        raise BadRequest(f"the graph {nameless} names no event; an event's id is an IRI")
    if not graphs:
        raise MalformedRdf(f"the {syntax.name} body holds no quads; an event has at least one")
    events = _events(graphs, names, EventHeaders(syntax=syntax.media_type))
    return [_with_headers(event, given.get(event.id, NO_HEADER_VALUES)) for event in events]


def _with_headers(event: Event, given: HeaderValues) -> tuple[HeaderValues, Event]:
    return given, replace(event, headers=make_headers(given, event.headers.syntax))


def _graphs(body: bytes, syntax: Syntax, base_iri: str | None) -> _Graphs:
    if not body or body.isspace():
        return {}
    check_depth(body, syntax)
    graphs: _Graphs = {}
    try:
        for block in _blocks(body, syntax, base_iri):
            _add(block, graphs)
    except SyntaxError as fault:
        raise describe_syntax_error(body, syntax, fault, base_iri) from None
    return graphs


def _blocks(body: bytes, syntax: Syntax, base_iri: str | None) -> Iterator[str]:
    """Yield the body as canonical N-Quads, some thousand lines at a time."""
    try:
        quads = ox.parse(body, format=syntax.format, base_iri=base_iri)
    except ValueError as error:
        raise BadRequest(f"the base IRI is not valid: {error}") from None
    buffer = _Buffer()
    while True:
        ox.serialize(islice(quads, _BLOCK), buffer, format=ox.RdfFormat.N_QUADS)
        if not (block := buffer.take()):
            return
        yield block.decode()


class _Buffer(BytesIO):
    """A buffer for the serializer, with a limit on the total: a long prefix makes a short body long."""

    _size = 0

    def write(self, part: ReadableBuffer, /) -> int:
        written = super().write(part)
        self._size += written
        if self._size > EXPANDED_BYTES:
            raise BodyTooLarge("the body, with its prefixes written out,", EXPANDED_BYTES)
        return written

    def take(self) -> bytes:
        """Return and remove the content."""
        taken = self.getvalue()
        self.seek(0)
        self.truncate()
        return taken


def _add(block: str, graphs: _Graphs) -> None:
    quads = _QUAD.findall(block)
    assert len(quads) == block.count("\n"), "the serializer wrote a line that is no quad"
    if max(map(len, block.split("\n"))) > IRI_CHARACTERS and _LONG.search(block):
        _check_iris(quads)
    current = None
    for subject, predicate, obj, graph in quads:
        if graph != current:
            current, lines = graph, graphs.setdefault(graph, {})
        lines[f"{subject}\t{predicate}\t{obj}"] = None


def split_terms(text: str) -> list[tuple[str, str, str, str]]:
    """Return subject, predicate, object and graph, or "", of each line of canonical N-Quads."""
    return _QUAD.findall(text)


def _check_iris(quads: Iterable[tuple[str, str, str, str]]) -> None:
    """Raises InputError for a long IRI or language tag. Literals may be long; a triple term counts as one."""
    for *others, obj in ((subject, predicate, graph, obj) for subject, predicate, obj, graph in quads):
        if max(len(obj) - obj.rfind('"'), *map(len, others)) > IRI_CHARACTERS + 4:
            raise InputError(f"an IRI is longer than the limit of {IRI_CHARACTERS} characters")


def _names(graphs: _Graphs, event_id: str | None, new_id: Callable[[], str]) -> dict[str, str]:
    """The IRI, as a term, for each graph of the body."""
    if event_id is not None:
        return {_only_graph(graphs, event_id): f"<{event_id}>"}
    return {graph: graph if graph.startswith("<") else f"<{new_id()}>" for graph in graphs}


def _only_graph(graphs: _Graphs, event_id: str) -> str:
    if len(graphs) > 1:
        raise BadRequest(f"the id {event_id} was given for a body of {len(graphs)} events; leave it out")
    graph = next(iter(graphs))
    if graph.startswith("<") and graph != f"<{event_id}>":
        raise BadRequest(f"the id {event_id} was given, but the body names its event {graph[1:-1]}; leave one out")
    return graph


def _events(graphs: _Graphs, names: Mapping[str, str], headers: EventHeaders) -> Iterator[Event]:
    for graph, lines in graphs.items():
        name = names[graph][1:-1]
        _check_size(name, lines)
        text = "\n".join(lines)
        if "_:" in text:
            text = skolemize(text, name, names)
        yield Event(name, text, headers)


def _check_size(name: str, lines: Sized) -> None:
    if len(name) > HEADER_CHARACTERS:
        terms.check_id(name)
    if len(lines) > EVENT_QUADS:
        raise InputError(f"the event {name} has {len(lines)} quads, over the limit of {EVENT_QUADS}")
