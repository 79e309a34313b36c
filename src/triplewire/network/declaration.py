"""The relay file: a TOML declaration of routes from streams of edges to streams of other edges, or of the same.

It is validated once, here; an error names the line. A rule that joins or splits streams is several routes.
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
from triplewire.http.openapi.resource_schemas import RELAY_STREAMS
from triplewire.model.errors import BadRequest
from triplewire.storage.registry.streams import check_stream_name

# Strands: one stream of one edge that becomes a stream of another, or of the same.


@dataclass(frozen=True)
class StreamAddress:
    """A stream at an edge."""

    edge: str
    """Its address, without a slash at the end."""
    stream: str

    def __str__(self) -> str:
        return f"{self.edge}/streams/{self.stream}"


@dataclass(frozen=True)
class Enrichment:
    """The name of an enricher, and what the file says to it."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RelayRoute:
    """What a relay carries by itself: a rule of its file that joins or splits is several of them.

    `filters` are parameters of the address, by which the edge above picks events; several values of one are repeated.
    """

    source: StreamAddress
    target: StreamAddress
    filters: tuple[tuple[str, str], ...] = ()
    enrichments: tuple[Enrichment, ...] = ()
    after: str = "earliest"

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def whole(self) -> bool:
        """Whether the target has all that the source has: who listens to one may as well listen to the other."""
        return not self.filters and not self.enrichments

    @property
    def key(self) -> str:
        """By which it is known again after a restart. What is carried makes it, not where the carrying began."""
        said = [str(self.source), str(self.target), sorted(self.filters)]
        return sha256(orjson.dumps(said)).hexdigest()[:16]


ROUTE_FILTERS = ("source", "application", "vocabulary", "ask", "filter")
"""What an edge picks events of a stream by, as parameters of its address."""

_TOP = ("name", "to", "address", "positions", "tokens", "relay")
_RULE = ("from", "to", "stream", "after", *ROUTE_FILTERS, "enrich", "split")


@dataclass(frozen=True)
class RelayDeclaration:
    """What a file says: who the relay is, where it keeps its positions, and its strands."""

    name: str
    positions: Path
    strands: tuple[RelayRoute, ...]
    to: str = ""
    address: str | None = None
    """Where clients reach the edge that `to` names, if the edge above may send some of its own there."""
    tokens: Mapping[str, Path] = field(default_factory=dict)
    """By the address of an edge, the file with the token that is shown to it, and to no other."""


def read_declaration(path: Path, to: str) -> RelayDeclaration:
    """The declaration in a file; `to` is the edge for rules that name none. Raises BadRequest, with the line."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"{path} cannot be read: {error}") from None
    return parse_declaration(text, path, to)


def parse_declaration(text: str, path: Path, to: str) -> RelayDeclaration:
    """The same of a text; relative names of files start where `path` lies."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise toml_syntax_error(text, error) from None
    return _DeclarationParser(text).declaration(document, path, to)


@dataclass(frozen=True)
class _DeclarationParser:
    """Checks parts of a document; what is wrong is told with the line in the text."""

    text: str

    def declaration(self, document: Mapping[str, Any], path: Path, to: str) -> RelayDeclaration:
        self._known(document, _TOP, ())
        target = self._edge(document["to"], ("to",)) if "to" in document else to.rstrip("/")
        name = self._text(document.get("name", path.stem), ("name",))
        positions = self._text(document.get("positions", f"{path.stem}.positions"), ("positions",))
        address = self._edge(document["address"], ("address",)) if "address" in document else None
        strands = tuple(self._strands(document.get("relay"), target))
        tokens = self._tokens(document.get("tokens", {}), path)
        return RelayDeclaration(name, path.parent / positions, strands, target, address, tokens)

    def _tokens(self, table: object, path: Path) -> dict[str, Path]:
        found = self._table(table, ("tokens",))
        return {
            self._edge(edge, ("tokens", edge)): path.parent / self._text(file, ("tokens", edge))
            for edge, file in found.items()
        }

    def _strands(self, rules: object, to: str) -> Iterator[RelayRoute]:
        if not isinstance(rules, list) or not rules:
            raise error_at_key(self.text, ("relay",), "there must be at least one table [[relay]] with a key `from`")
        if len(rules) > RELAY_STREAMS:
            raise error_at_key(self.text, ("relay",), f"there are {len(rules)} tables [[relay]], over {RELAY_STREAMS}")
        seen: set[str] = set()
        for number, rule in enumerate(rules):
            for strand in self._rule(rule, ("relay", number), to):
                if strand.key in seen:
                    raise error_at_key(self.text, ("relay", number), f"{strand} is there twice, with the same filters")
                seen.add(strand.key)
                yield strand

    def _rule(self, rule: Mapping[str, Any], at: tuple[KeyStep, ...], to: str) -> Iterator[RelayRoute]:
        self._known(rule, _RULE, at)
        if "from" not in rule:
            raise error_at_key(
                self.text, at, "`from` is missing: the address of a stream, such as http://host:8080/streams/s"
            )
        sources = [self._stream_address(each, (*at, "from")) for each in self._several(rule["from"], (*at, "from"))]
        if "to" in rule:
            to = self._edge(rule["to"], (*at, "to"))
        after = self._text(rule.get("after", "earliest"), (*at, "after"))
        enrichments = tuple(self._enrichments(rule.get("enrich", {}), (*at, "enrich")))
        for stream, filters in self._parts(rule, sources, at):
            for source in sources:
                target = StreamAddress(to, stream or source.stream)
                if source == target:
                    raise error_at_key(
                        self.text, at, f"{source} would be carried into itself; give another `stream` or `to`"
                    )
                yield RelayRoute(source, target, filters, enrichments, after)

    def _parts(
        self, rule: Mapping[str, Any], sources: Sequence[StreamAddress], at: tuple[KeyStep, ...]
    ) -> Iterator[tuple[str | None, tuple[tuple[str, str], ...]]]:
        """The streams that a rule makes, each with its filters; None is a stream that keeps its name."""
        common = self._filters(rule, at)
        if "split" not in rule:
            named = self._stream(rule["stream"], (*at, "stream")) if "stream" in rule else None
            if named is None and len({each.stream for each in sources}) > 1:
                raise error_at_key(
                    self.text, (*at, "from"), "these streams have several names; say with `stream` what becomes"
                )
            yield named, common
            return
        if "stream" in rule:
            raise error_at_key(
                self.text, (*at, "stream"), "`stream` and `split` cannot stand together: `split` names streams"
            )
        for name, filters in self._table(rule["split"], (*at, "split")).items():
            place = (*at, "split", name)
            self._known(self._table(filters, place), ROUTE_FILTERS, place)
            yield self._stream(name, place), (*common, *self._filters(filters, place))

    def _filters(self, table: Mapping[str, Any], at: tuple[KeyStep, ...]) -> tuple[tuple[str, str], ...]:
        named = [(name, table[name], (*at, name)) for name in ROUTE_FILTERS if name in table]
        return tuple(pair for each in named for pair in self._filter(*each))

    def _filter(self, name: str, value: object, at: tuple[KeyStep, ...]) -> Iterator[tuple[str, str]]:
        """A filter of a deployment may be a table: its `name`, and what it takes."""
        if name == "filter" and isinstance(value, dict):
            if "name" not in value:
                raise error_at_key(self.text, at, "`filter` has no `name`, which is that of a filter of the edge above")
            yield name, self._text(value["name"], at)
            yield from ((f"filter.{key}", self._text(value[key], (*at, key))) for key in value if key != "name")
        else:
            yield from ((name, each) for each in self._several(value, at))

    def _enrichments(self, table: object, at: tuple[KeyStep, ...]) -> Iterator[Enrichment]:
        for name, options in self._table(table, at).items():
            yield Enrichment(name, self._table(options, (*at, name)))

    def _stream_address(self, text: str, at: tuple[KeyStep, ...]) -> StreamAddress:
        edge, found, stream = text.rpartition("/streams/")
        if not found:
            raise error_at_key(
                self.text, at, f"{text!r} is no address of a stream; one is http://host:8080/streams/name"
            )
        return StreamAddress(self._edge(edge, at), self._stream(stream, at))

    def _edge(self, value: object, at: tuple[KeyStep, ...]) -> str:
        text = self._text(value, at).rstrip("/")
        try:
            parts = urlsplit(text)
            right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            right = False
        if not right or parts.query or parts.fragment:
            raise error_at_key(self.text, at, f"{text!r} is no address of an edge; one is http://host:8080")
        return text

    def _stream(self, name: object, at: tuple[KeyStep, ...]) -> str:
        try:
            return check_stream_name(self._text(name, at))
        except BadRequest as error:
            raise error_at_key(self.text, at, str(error)) from None

    def _several(self, value: object, at: tuple[KeyStep, ...]) -> list[str]:
        given = value if isinstance(value, list) else [value]
        if not given:
            raise error_at_key(self.text, at, f"`{at[-1]}` is an empty list; leave it out, or put something in")
        return [self._text(each, at) for each in given]

    def _text(self, value: object, at: tuple[KeyStep, ...]) -> str:
        if not isinstance(value, str) or not value:
            raise error_at_key(self.text, at, f"`{at[-1]}` must be a text in quotes, not {value!r}")
        return value

    def _table(self, value: object, at: tuple[KeyStep, ...]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise error_at_key(self.text, at, f"`{at[-1]}` must be a table, not {value!r}")
        return value

    def _known(self, table: Mapping[str, Any], known: Sequence[str], at: tuple[KeyStep, ...]) -> None:
        if unknown := next((name for name in table if name not in known), None):
            raise error_at_key(
                self.text, (*at, unknown), f"`{unknown}` is not known here; known are {', '.join(known)}"
            )
