"""The relay file: a TOML declaration of routes from streams to streams, of other edges or of the same edge.

It is validated once, here; an error names the line. A table that joins or splits streams declares several routes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from triplewire.config.toml_errors import KeyStep, error_at_key, toml_syntax_error
from triplewire.http.openapi.documents import RELAY_STREAMS
from triplewire.model.errors import BadRequest
from triplewire.storage.registry.streams import check_stream_name


@dataclass(frozen=True)
class StreamAddress:
    edge: str
    """The address of the edge, without a slash at the end."""
    stream: str

    def __str__(self) -> str:
        return f"{self.edge}/streams/{self.stream}"


@dataclass(frozen=True)
class Enrichment:
    """An enricher by name, and its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RelayRoute:
    """One source stream and one target stream.

    `filters` are query parameters by which the edge upstream selects events; a parameter may be repeated.
    """

    source: StreamAddress
    target: StreamAddress
    filters: tuple[tuple[str, str], ...] = ()
    enrichments: tuple[Enrichment, ...] = ()
    after: str = "earliest"

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def complete(self) -> bool:
        """Whether the target has all events of the source unchanged, so that clients may consume either."""
        return not self.filters and not self.enrichments

    @property
    def key(self) -> str:
        """The name of its position file. It depends on the streams and filters, not on `after`."""
        return sha256(orjson.dumps([str(self.source), str(self.target), sorted(self.filters)])).hexdigest()[:16]


ROUTE_FILTERS = ("source", "application", "vocabulary", "ask", "filter")
"""The query parameters by which an edge selects events of a stream."""

_TOP_KEYS = ("name", "to", "address", "positions", "tokens", "relay")
_TABLE_KEYS = ("from", "to", "stream", "after", *ROUTE_FILTERS, "enrich", "split")


@dataclass(frozen=True)
class RelayDeclaration:
    """A relay file: the name of the relay, the directory of its positions, and its routes."""

    name: str
    positions: Path
    routes: tuple[RelayRoute, ...]
    to: str = ""
    address: str | None = None
    """The address at which clients reach the edge `to`, if edges upstream may redirect clients there."""
    tokens: Mapping[str, Path] = field(default_factory=dict)
    """By the address of an edge, the file with the token for it and for no other."""


def read_declaration(path: Path, to: str) -> RelayDeclaration:
    """Read a relay file; `to` is the edge for tables that name none. Raises BadRequest, with the line."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} cannot be read: {error}") from None
    return parse_declaration(text, path, to)


def parse_declaration(text: str, path: Path, to: str) -> RelayDeclaration:
    """Parse the text of a relay file; relative file names in it start at the directory of `path`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise toml_syntax_error(text, error) from None
    return _DeclarationParser(text).declaration(document, path, to)


@dataclass(frozen=True)
class _DeclarationParser:
    """Checks the parts of a document; errors name the line of the text."""

    text: str

    def _error(self, at: Sequence[KeyStep], message: str) -> BadRequest:
        return error_at_key(self.text, at, message)

    def declaration(self, document: Mapping[str, Any], path: Path, to: str) -> RelayDeclaration:
        self._known(document, _TOP_KEYS, ())
        target = self._edge(document["to"], ("to",)) if "to" in document else to.rstrip("/")
        name = self._text(document.get("name", path.stem), ("name",))
        positions = self._text(document.get("positions", f"{path.stem}.positions"), ("positions",))
        address = self._edge(document["address"], ("address",)) if "address" in document else None
        routes = tuple(self._routes(document.get("relay"), target))
        tokens = self._tokens(document.get("tokens", {}), path)
        return RelayDeclaration(name, path.parent / positions, routes, target, address, tokens)

    def _tokens(self, table: object, path: Path) -> dict[str, Path]:
        return {
            self._edge(edge, ("tokens", edge)): path.parent / self._text(file, ("tokens", edge))
            for edge, file in self._table(table, ("tokens",)).items()
        }

    def _routes(self, rules: object, to: str) -> Iterator[RelayRoute]:
        if not isinstance(rules, list) or not rules:
            raise self._error(("relay",), "there must be at least one table [[relay]] with a key `from`")
        if len(rules) > RELAY_STREAMS:
            raise self._error(
                ("relay",), f"there are {len(rules)} tables [[relay]]; at most {RELAY_STREAMS} are allowed"
            )
        seen: set[str] = set()
        for number, rule in enumerate(rules):
            for route in self._rule(rule, ("relay", number), to):
                if route.key in seen:
                    raise self._error(("relay", number), f"{route} is declared twice with the same filters")
                seen.add(route.key)
                yield route

    def _rule(self, rule: Mapping[str, Any], at: tuple[KeyStep, ...], to: str) -> Iterator[RelayRoute]:
        self._known(rule, _TABLE_KEYS, at)
        if "from" not in rule:
            raise self._error(at, "`from` is missing: the address of a stream, such as http://host:8080/streams/s")
        sources = [self._stream_address(each, (*at, "from")) for each in self._several(rule["from"], (*at, "from"))]
        if "to" in rule:
            to = self._edge(rule["to"], (*at, "to"))
        after = self._text(rule.get("after", "earliest"), (*at, "after"))
        enrichments = tuple(self._enrichments(rule.get("enrich", {}), (*at, "enrich")))
        for stream, filters in self._parts(rule, sources, at):
            for source in sources:
                target = StreamAddress(to, stream or source.stream)
                if source == target:
                    raise self._error(at, f"{source} would be relayed into itself; give another `stream` or `to`")
                yield RelayRoute(source, target, filters, enrichments, after)

    def _parts(
        self, rule: Mapping[str, Any], sources: Sequence[StreamAddress], at: tuple[KeyStep, ...]
    ) -> Iterator[tuple[str | None, tuple[tuple[str, str], ...]]]:
        """Yield each target stream of a table with its filters; None is a stream that keeps its name."""
        common = self._filters(rule, at)
        if "split" not in rule:
            named = self._stream(rule["stream"], (*at, "stream")) if "stream" in rule else None
            if named is None and len({each.stream for each in sources}) > 1:
                raise self._error((*at, "from"), "these streams have several names; name the target with `stream`")
            yield named, common
            return
        if "stream" in rule:
            raise self._error((*at, "stream"), "`stream` and `split` exclude each other: `split` names the streams")
        for name, filters in self._table(rule["split"], (*at, "split")).items():
            key = (*at, "split", name)
            self._known(self._table(filters, key), ROUTE_FILTERS, key)
            yield self._stream(name, key), (*common, *self._filters(filters, key))

    def _filters(self, table: Mapping[str, Any], at: tuple[KeyStep, ...]) -> tuple[tuple[str, str], ...]:
        named = [(name, table[name], (*at, name)) for name in ROUTE_FILTERS if name in table]
        return tuple(pair for each in named for pair in self._filter(*each))

    def _filter(self, name: str, value: object, at: tuple[KeyStep, ...]) -> Iterator[tuple[str, str]]:
        """Yield the parameters of a filter. A filter of a deployment may be a table: its `name` and its parameters."""
        if name == "filter" and isinstance(value, dict):
            if "name" not in value:
                raise self._error(at, "`filter` needs a `name`: that of a filter of the edge upstream")
            yield name, self._text(value["name"], at)
            yield from ((f"filter.{key}", self._text(value[key], (*at, key))) for key in value if key != "name")
        else:
            yield from ((name, each) for each in self._several(value, at))

    def _enrichments(self, table: object, at: tuple[KeyStep, ...]) -> Iterator[Enrichment]:
        for name, options in self._table(table, at).items():
            yield Enrichment(name, self._table(options, (*at, name)))

    def _stream_address(self, text: str, at: tuple[KeyStep, ...]) -> StreamAddress:
        edge, separator, stream = text.rpartition("/streams/")
        if not separator:
            raise self._error(at, f"{text!r} is not the address of a stream, such as http://host:8080/streams/name")
        return StreamAddress(self._edge(edge, at), self._stream(stream, at))

    def _edge(self, value: object, at: tuple[KeyStep, ...]) -> str:
        text = self._text(value, at).rstrip("/")
        try:
            parts = urlsplit(text)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid or parts.query or parts.fragment:
            raise self._error(at, f"{text!r} is not the address of an edge, such as http://host:8080")
        return text

    def _stream(self, name: object, at: tuple[KeyStep, ...]) -> str:
        try:
            return check_stream_name(self._text(name, at))
        except BadRequest as error:
            raise self._error(at, str(error)) from None

    def _several(self, value: object, at: tuple[KeyStep, ...]) -> list[str]:
        items = value if isinstance(value, list) else [value]
        if not items:
            raise self._error(at, f"`{at[-1]}` is an empty list; leave it out, or add an item")
        return [self._text(each, at) for each in items]

    def _text(self, value: object, at: tuple[KeyStep, ...]) -> str:
        if not isinstance(value, str) or not value:
            raise self._error(at, f"`{at[-1]}` must be a string in quotes, not {value!r}")
        return value

    def _table(self, value: object, at: tuple[KeyStep, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(at, f"`{at[-1]}` must be a table, not {value!r}")
        return value

    def _known(self, table: Mapping[str, Any], known: Sequence[str], at: tuple[KeyStep, ...]) -> None:
        if unknown := next((name for name in table if name not in known), None):
            raise self._error((*at, unknown), f"`{unknown}` is unknown here; known are {', '.join(known)}")
