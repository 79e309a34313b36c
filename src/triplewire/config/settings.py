"""Settings are one frozen value that every process is started with.

A process can also hide a package from itself. PyArrow imports pandas, where it is installed, as soon as it sees a
Python list, only to ask whether the list is a data frame. That takes half a second and 50 MB in every process. No
process of a broker needs it, and each hides it.
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
"""Connections that one client may have in use at one edge: a fifteenth of those that an edge accepts, and more than any
browser or program opens."""

CLIENT_REQUESTS: Final = 1_000.0
"""Requests of one client per second at one edge: about half of what an edge can publish."""

CLIENT_BYTES: Final = 64.0 * 1024 * 1024
"""Bytes of request bodies of one client per second at one edge: more than an edge can parse."""

QUERY_SECONDS: Final = 30.0
"""Time for a SPARQL query over history, to the last byte of its answer: a slow reader holds a process that long."""

QUERY_MEMORY: Final = "2GB"
"""Memory of one SPARQL query over history. Nothing is spilled to the disk."""

QUERY_ROWS: Final = 1_000_000
"""Rows in the answer of one SPARQL query over history."""

QUERIES_AT_ONCE: Final = 2
"""SPARQL queries over history that run at the same time, each in its own process; others wait."""

TIME_TRAVEL_HOURS: Final = 24
"""Hours for which older versions of the lake can be read. A commit per second is 86,400 small files of the Delta log in
a day."""

PREFIX = "TRIPLEWIRE_"
LOG_FORMATS = ("text", "json")

TOKEN, TOKEN_FILE, CACERT = "TRIPLEWIRE_TOKEN", "TRIPLEWIRE_TOKEN_FILE", "TRIPLEWIRE_CACERT"
"""Variables of clients: the bearer token, a file with it, and a file with the CA certificates to trust. They are not
settings of a broker."""

RENAMED_SETTINGS: Mapping[str, str] = {
    "door": "auth",
    "hook_networks": "webhook_networks",
    "keep": "retention",
    "keep_bytes": "retention_bytes",
    "memory": "replay_cache",
    "stations": "state_partitions",
    "travel_hours": "time_travel_hours",
    "windows": "linger",
}
"""Old names of settings with the new ones. An old name is refused: to ignore it would open what it had closed."""

RENAMED_OPTIONS: Mapping[str, str] = {"--upto": "--through"}
"""Old names of command-line options with the new ones, as they are written: `--old`."""

RENAMED_COMMANDS: Mapping[str, str] = {"hooks": "webhooks", "bench doors": "bench edge"}
"""Old names of commands with the new ones."""


class _DataPath:
    """A path in the data directory of the settings."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, settings: Settings, owner: type[Settings]) -> Path:
        return settings.data / self._name


@dataclass(frozen=True)
class Settings:
    """The settings of a broker. Each field can be set as `TRIPLEWIRE_<FIELD>` in the environment, lists with spaces."""

    data: Path = Path("triplewire-data")
    host: str = "127.0.0.1"
    port: int = 8080
    master: str = "local[2]"
    driver_memory: str = "640m"
    match_interval: float = 0.1
    """Seconds between two polls of an idle log by the `match` job."""
    match_tasks: int = 1
    """Tasks that match events at the same time, in each lane. More than one are of use if one is busy all the time."""
    store_interval: float = 1.0
    """Seconds between two polls by the `store` job; each batch is a commit of the lake."""
    strategy: str = "csbv"
    """How the state of continuous queries is partitioned: `csbv` by join values, `cqc` by pattern."""
    state_partitions: int = 0
    """State partitions of continuous queries, each one task of a batch; 0 is one per core."""
    query_processes: int = QUERIES_AT_ONCE
    """SPARQL queries over history that run at once, each in its own process."""
    query_seconds: float = QUERY_SECONDS
    query_memory: str = QUERY_MEMORY
    query_rows: int = QUERY_ROWS
    spark_bytes: int = 4 * 1024**3
    """Bytes of files above which a query over history runs on Spark, unless it names an engine."""
    retention: tuple[str, ...] = ()
    """Age at which the lake drops events: `30d` in all streams, `home=12h` in one. By default it keeps all."""
    retention_bytes: int = 0
    """Bytes of files that the lake keeps; the oldest events are dropped first. 0 keeps all."""
    time_travel_hours: int = TIME_TRAVEL_HOURS
    """Hours for which older versions of the lake can be read."""
    balance: tuple[str, ...] = ()
    """How zones are balanced, as `name=value`: `strategy`, `zones`, `criteria`, `cut`, `dimensions`, and others."""
    linger: tuple[str, ...] = ()
    """Seconds that messages may wait to be sent together under load: `0.5` in streams and notifications, `alerts=0` in
    one stream. By default 0.5 in streams, 0 in notifications."""
    services: tuple[str, ...] = ()
    """Endpoints that SERVICE may query."""
    replay_cache: tuple[str, ...] = ()
    """Recent events that an edge caches for clients that resume: `64MB` of all streams together, `30s` of each,
    `home=8MB`, `home=10s` or `alerts=0` of one."""
    origins: tuple[str, ...] = ()
    """Origins whose pages may use the edge from a browser (CORS), such as `https://example.org`; `*` is all."""
    client_connections: int = CLIENT_CONNECTIONS
    """Connections that one client may have in use at an edge, subscribers included; 0 is no limit. Clients on the same
    machine have no limits."""
    client_requests: float = CLIENT_REQUESTS
    """Requests of one client per second; 0 is no limit."""
    client_bytes: float = CLIENT_BYTES
    """Bytes of request bodies of one client per second; 0 is no limit."""
    proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose X-Forwarded-For is trusted."""
    webhook_networks: tuple[str, ...] = ()
    """Addresses and networks that webhooks and WebSub may call although they are not public, such as `127.0.0.0/8`."""
    auth: str = "auto"
    """`closed`: clients must authenticate. `open`: everyone may do everything, on any address. `auto`: like `open` on a
    loopback address until the first token is made, like `closed` otherwise."""
    jwt_keys: str = ""
    """A file or https address with the public keys (JWKS) that verify JSON Web Tokens."""
    jwt_issuer: str = ""
    """The `iss` that these tokens must have."""
    jwt_audience: str = ""
    """The `aud` that these tokens must have."""
    jwt_leeway: float = 30.0
    """Seconds by which clocks may differ."""
    tls_certificate: str = ""
    """A file with a certificate and its chain (PEM). With it the edge speaks only TLS."""
    tls_key: str = ""
    """The file with the private key (PEM); by default that of the certificate."""
    traces: str = ""
    """The OTLP/HTTP endpoint of a collector, such as `http://localhost:4318`; without it there are no spans."""
    trace_ratio: float = 0.01
    """The share of publications that is traced where the publisher sends no `traceparent`: 1 is all, 0 none."""
    log_format: str = "text"
    """The format of logs: `text`, or `json` for one object per line."""
    edges: str = "1"
    """Edges that `up` starts on one port: a number, `auto` for as many as the load needs, or `auto:8` for at most 8."""
    edge: str = ""
    """The name of an edge among those of one data directory; by default its process id."""
    sockets: tuple[str, ...] = ()
    """Descriptors of listening sockets that an edge takes over instead of opening its own."""
    supervisor: int = 0
    """The id of the process that started this one; this one stops when that is gone. 0 is none."""

    log = _DataPath("log.db")
    """Events and registry."""
    access = _DataPath("access.db")
    """The digests of access tokens."""
    audit = _DataPath("audit")
    identity = _DataPath("edge.id")
    outbox = _DataPath("outbox.db")
    webhooks = _DataPath("webhooks.db")
    """Progress, dead letters and secrets of webhooks."""
    continuous = _DataPath("continuous")
    """Plans and state of continuous queries."""
    continuous_state = _DataPath("continuous/state")
    """The part of it that was computed from events."""
    lake = _DataPath("lake/quads")
    statistics = _DataPath("lake/statistics.json")
    read_counts = _DataPath("lake/reads")
    """Files in which query processes count what they read, by zone."""
    index = _DataPath("index")
    checkpoints = _DataPath("checkpoints")
    heartbeat = _DataPath("pipeline.json")
    edge_statuses = _DataPath("edges")
    """A status file of each edge."""
    supervisor_heartbeat = _DataPath("up.json")

    @property
    def url(self) -> str:
        scheme = "https" if self.tls_certificate else "http"
        host = "localhost" if self.host == "127.0.0.1" else self.host
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """The defaults, overridden by the environment. Raises ValueError for a value of the wrong type, and for an old
        name of a setting."""
        for old, new in RENAMED_SETTINGS.items():
            if PREFIX + old.upper() in environment:
                raise ValueError(f"the setting {PREFIX}{old.upper()} is named {PREFIX}{new.upper()} now")
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
    """Whether the supervisor of this process is gone."""
    return settings.supervisor not in (0, os.getppid())


class _HiddenPackage(MetaPathFinder):
    """Makes one package look as if it were not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"{self.package} is hidden in this process", name=fullname)


def hide(package: str) -> None:
    """Make importing a package fail in this process. A package that is imported already stays."""
    if not any(isinstance(each, _HiddenPackage) and each.package == package for each in sys.meta_path):
        sys.meta_path.insert(0, _HiddenPackage(package))
