"""Settings are one frozen value that every process is started with.

A process can also hide a package from itself. PyArrow imports pandas, where it is installed, as soon as it sees a
Python list, only to ask whether the list is a data frame. That takes half a second and 50 MB in every process. Spark's
driver needs pandas; edges and workers do not, and hide it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, Final

CLIENT_CONNECTIONS: Final = 1_000
"""Connections of one client that are in use at a time at one edge, unless it is set: a fifteenth of those that there
may be, and more than any browser or program opens."""

CLIENT_REQUESTS: Final = 1_000.0
"""Requests of one client in a second at one edge, unless it is set: some half of what an edge can publish."""

CLIENT_BYTES: Final = 64.0 * 1024 * 1024
"""Bytes of bodies of one client in a second at one edge, unless it is set: more than an edge can take apart."""

QUERY_SECONDS: Final = 30.0
"""From the first step of a SPARQL query over history to its last byte: a slow reader holds its process that long."""

QUERY_MEMORY: Final = "2GB"
"""Memory of one SPARQL query over history. Nothing is spilled to the disk."""

QUERY_ROWS: Final = 1_000_000
"""Rows in the answer of one SPARQL query over history."""

QUERIES_AT_ONCE: Final = 2
"""SPARQL queries over history that run at the same time, each in a process of its own; others wait their turn."""

TRAVEL_HOURS: Final = 24
"""For how long older versions of the lake can be read, unless set otherwise. A commit a second is 86,400 small files
of the table's log in a day."""


PREFIX = "TRIPLEWIRE_"
LOG_FORMATS = ("text", "json")

TOKEN, TOKEN_FILE, CACERT = "TRIPLEWIRE_TOKEN", "TRIPLEWIRE_TOKEN_FILE", "TRIPLEWIRE_CACERT"
"""Where clients look for the token to show, for a file with it, and for one with the certificates to go by. They are no
settings: a broker needs none of them."""


@dataclass(frozen=True)
class Settings:
    """Where things lie and where the door is. Each field can be set as `TRIPLEWIRE_<FIELD>` in the environment."""

    data: Path = Path("triplewire-data")
    host: str = "127.0.0.1"
    port: int = 8080
    master: str = "local[2]"
    driver_memory: str = "640m"
    match_interval: float = 0.1
    """Seconds between two looks of the `match` query at an idle log."""
    store_interval: float = 1.0
    """Seconds between two looks of the `store` query; each batch becomes a commit of the lake."""
    strategy: str = "csbv"
    """How the state of continuous queries is spread: `csbv` by the values that join, `cqc` by pattern."""
    stations: int = 0
    """In how many parts it lies, each of which is one task of a batch; 0 is one for each core."""
    query_processes: int = QUERIES_AT_ONCE
    """How many SPARQL queries over history run at once, each in a process of its own."""
    query_seconds: float = QUERY_SECONDS
    query_memory: str = QUERY_MEMORY
    query_rows: int = QUERY_ROWS
    spark_bytes: int = 4 * 1024**3
    """Above so many bytes of files a query goes to Spark, unless it says otherwise."""
    keep: tuple[str, ...] = ()
    """How long the lake keeps events: `30d` those of all streams, `home=12h` those of one. Without, for good."""
    keep_bytes: int = 0
    """How many bytes of files the lake keeps, of which the oldest go first; 0 is all."""
    travel_hours: int = TRAVEL_HOURS
    """For how many hours older versions of the lake can be read."""
    balance: tuple[str, ...] = ()
    """How zones are balanced, as `name=value`: `strategy`, `zones`, `criteria`, `cut`, `dimensions`, and others."""
    windows: tuple[str, ...] = ()
    """How many seconds messages may wait for others under load: `0.5` those of all streams, `alerts=0` those of one."""
    services: tuple[str, ...] = ()
    """The endpoints that SERVICE may ask; in the environment with spaces between them."""
    memory: tuple[str, ...] = ()
    """How much of streams an edge remembers for those who come back: `64MB` of all together, `30s` of each, of one
    `home=8MB`, `home=10s` or `alerts=0`."""
    origins: tuple[str, ...] = ()
    """The origins whose pages in a browser may use the edge, such as `https://example.org`; `*` is all."""
    client_connections: int = CLIENT_CONNECTIONS
    """How many connections of one client an edge has in use at a time, listeners among them; 0 is any number. Clients
    on the same machine have no limits."""
    client_requests: float = CLIENT_REQUESTS
    """How many requests of one client an edge takes in a second; 0 is any number."""
    client_bytes: float = CLIENT_BYTES
    """How many bytes of bodies an edge takes from one client in a second; 0 is any number."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that are believed when they say, by X-Forwarded-For, for whom they ask."""
    hook_networks: tuple[str, ...] = ()
    """Addresses and networks that webhooks and WebSub may call although they are not public, such as `127.0.0.0/8`."""
    door: str = "auto"
    """Who may come in. `auto`: those whom a token or a key knows; and everyone, on an address of this machine alone,
    until there is a first token. `open`: everyone, on any address. `closed`: those who are known."""
    jwt_keys: str = ""
    """A file, or an https address, with the public keys (JWKS) by which signed tokens of others (JWT) are checked."""
    jwt_issuer: str = ""
    """Whose tokens these are: their `iss`."""
    jwt_audience: str = ""
    """For whom they must be: their `aud`."""
    jwt_leeway: float = 30.0
    """By how many seconds clocks may differ."""
    tls_certificate: str = ""
    """A file with a certificate and its chain (PEM): with it, and its key, the edge speaks TLS alone."""
    tls_key: str = ""
    """The file with its key (PEM); by default that of the certificate."""
    traces: str = ""
    """Where a collector takes spans by OTLP over HTTP, such as `http://localhost:4318`; without, none are made."""
    trace_ratio: float = 0.01
    """Which part of publications is traced whose publisher says nothing of a trace: 1 is all, 0 none."""
    log_format: str = "text"
    """How processes write their logs: `text`, or `json` for an object on each line."""
    edges: str = "1"
    """How many edges `up` starts on one port: a number, `auto` for as many as the load asks for, or `auto:8` for eight
    of them at most."""
    edge: str = ""
    """The name of an edge among those over one directory; by default its process id."""
    sockets: tuple[str, ...] = ()
    """Descriptors of sockets that are listened on already, which an edge takes over instead of opening its own."""
    supervisor: int = 0
    """The process that started this one and without which it stops; 0 for one that stands alone."""

    @property
    def log(self) -> Path:
        return self.data / "log.db"

    @property
    def access(self) -> Path:
        """Where tokens are kept, as digests."""
        return self.data / "access.db"

    @property
    def audit(self) -> Path:
        """Where it is written down who did what."""
        return self.data / "audit"

    @property
    def identity(self) -> Path:
        return self.data / "edge.id"

    @property
    def outbox(self) -> Path:
        return self.data / "outbox.db"

    @property
    def hooks(self) -> Path:
        """How far hooks are, what they did not take, and their secrets."""
        return self.data / "hooks.db"

    @property
    def slow_outbox(self) -> Path:
        return self.data / "outbox-slow.db"

    @property
    def ongoing(self) -> Path:
        """Where continuous queries have their state."""
        return self.data / "ongoing"

    @property
    def kept(self) -> Path:
        """What of it was made of events."""
        return self.ongoing / "state"

    @property
    def ongoing_outbox(self) -> Path:
        """The answers of continuous queries."""
        return self.data / "outbox-ongoing.db"

    @property
    def lake(self) -> Path:
        return self.data / "lake" / "quads"

    @property
    def statistics(self) -> Path:
        """Where processes of queries write down what they have counted."""
        return self.data / "lake" / "statistics.json"

    @property
    def reads(self) -> Path:
        """Where processes of queries write down what they have read."""
        return self.data / "lake" / "reads"

    @property
    def index(self) -> Path:
        return self.data / "index"

    @property
    def checkpoints(self) -> Path:
        return self.data / "checkpoints"

    @property
    def heartbeat(self) -> Path:
        return self.data / "pipeline.json"

    @property
    def standings(self) -> Path:
        """Where each edge tells how it stands."""
        return self.data / "edges"

    @property
    def supervision(self) -> Path:
        """Where `up` tells which process it is."""
        return self.data / "up.json"

    @property
    def url(self) -> str:
        scheme = "https" if self.tls_certificate else "http"
        host = "localhost" if self.host == "127.0.0.1" else self.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The defaults, overridden by what the environment sets. Raises ValueError for a value of the wrong type."""
        given: dict[str, Any] = {}
        for field in fields(cls):
            name = PREFIX + field.name.upper()
            if name in environment:
                given[field.name] = _value(name, environment[name], type(field.default))
        return cls(**given)


def to_environment(settings: Settings) -> dict[str, str]:
    """Settings as the variables from which another process reads them back."""
    values = {PREFIX + each.name.upper(): getattr(settings, each.name) for each in fields(settings)}
    return {name: " ".join(value) if isinstance(value, tuple) else str(value) for name, value in values.items()}


_KINDS = {int: "a whole number", float: "a number"}


def _value(name: str, text: str, kind: Callable[[str], Any]) -> Any:  # noqa: ANN401 - of the field's own type
    try:
        return tuple(text.split()) if kind is tuple else kind(text)
    except ValueError:
        raise ValueError(f"{name}={text!r} is not {_KINDS.get(kind, 'right')}") from None  # type: ignore[call-overload]


def is_orphaned(settings: Settings) -> bool:
    """Whether the process that watched over this one is gone."""
    return settings.supervisor not in (0, os.getppid())


# Imports that a process can do without.
#
# PyArrow imports pandas, where it is installed, as soon as it sees a Python list, only to ask whether the list is one
# of its frames. That takes half a second and 50 MB in every process. Spark's driver cannot run without pandas; edges
# and workers can, and hide it from themselves.


class _Hiding(MetaPathFinder):
    """Says of one package that it is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"{self.package} is hidden in this process", name=fullname)


def hide(package: str) -> None:
    """From now on this process cannot import the package. One that was imported already stays."""
    if not any(isinstance(each, _Hiding) and each.package == package for each in sys.meta_path):
        sys.meta_path.insert(0, _Hiding(package))
