"""`bench edge`: the cost of authentication, of policies, of each dialect, and of webhooks.

Tokens and policies: edges take the same publications in turn. The figure is the CPU time of the edge for each, the
median over the rounds, so that a busy machine does as well as a quiet one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

from bench.edge_dialects import measure_dialects
from bench.edge_webhooks import measure_webhooks
from bench.harness import Machine, Report, Say, make_directory, make_entries, measure_cpu
from bench.processes import HOST, edge_settings, start_edges
from triplewire.matching.matcher import Matcher
from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.model import Kind, Subscription
from triplewire.model.errors import Unavailable
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.security import Visibility
from triplewire.security.visibility import PatternSet
from triplewire.service.processes import ChildProcess
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

REQUESTS = 1_000
BODIES, EVENTS = 20, 500
"""Requests of a round with tokens; bodies of a round with policies, and events in each."""
ROUNDS = 7
SUBSCRIPTIONS = 10_000

_ISSUER, _AUDIENCE = "https://id.example.org", "triplewire"
_DENY = '[default]\nsee = "allow"\npublish = "allow"\n[[see]]\nname = "bench"\nwho = ["*"]\ndeny.{}\n'
POLICIES = {
    "open": None,
    "predicate": _DENY.format('predicates = ["<urn:bench:place>"]'),
    "class": _DENY.format('classes = ["<urn:bench:Secret>"]'),
}
"""No policy, one that denies a predicate that every event has, and one that denies a class that no event has."""
VISIBILITIES = {
    "open": None,
    "predicate": Visibility(predicates=PatternSet.of(["*"], ["<urn:bench:place>"])),
    "class": Visibility(classes=PatternSet.of(["*"], ["<urn:bench:Secret>"])),
}


def run(parts: Sequence[str], say: Say) -> Report:
    machine, began, report = Machine(), time.perf_counter(), Report()
    for name in parts:
        say(f"measuring {name}")
        report[name] = PARTS[name]()
    report["seconds"] = round(time.perf_counter() - began, 1)
    report["machine"] = machine.describe()
    return report


class EdgeClient:
    """A client of one edge over a connection that stays open, with headers of its own."""

    def __init__(self, child: ChildProcess, headers: Mapping[str, str] | None = None) -> None:
        self.pids = [child.pid or 0]
        self.sent = 0
        self._headers = headers or {}
        self._connection, self._listener = (HTTPConnection(HOST, child.settings.port) for _ in range(2))

    def close(self) -> None:
        self._connection.close()
        self._listener.close()

    def request(self, method: str, path: str, body: bytes, media_type: str) -> bytes:
        """Return the body of the answer. Raises Unavailable unless it is a success."""
        self._connection.request(method, path, body, {"Content-Type": media_type, **self._headers})
        response = self._connection.getresponse()
        found = response.read()
        if response.status not in (200, 201):
            raise Unavailable(f"{method} {path} was answered with {response.status}: {found.decode()}")
        return found

    def listen(self) -> None:
        """Listen to the stream; `wait_for` reads on."""
        self._listener.request("GET", "/streams/bench?format=ndjson&linger=0")
        self._lines = self._listener.getresponse()
        self._lines.readline()

    def wait_for(self, event: str) -> None:
        while f'"event":"{event}"'.encode() not in self._lines.readline():
            pass


@contextmanager
def _connect(
    headers: Mapping[str, Mapping[str, str] | None], children: Sequence[ChildProcess]
) -> Iterator[dict[str, EdgeClient]]:
    """Connect a client with its headers to each edge."""
    with ExitStack() as stack:
        pairs = zip(headers.items(), children, strict=True)
        yield {name: stack.enter_context(closing(EdgeClient(child, shown))) for (name, shown), child in pairs}


def _measure_in_turn(
    clients: Mapping[str, EdgeClient], publish: Callable[[EdgeClient], None], count: int, rounds: int, per: int = 1
) -> dict[str, list[float]]:
    """Return microseconds of the edge's CPU for each event, by client and round; one round more warms up. A round are
    `count` publications of `per` events."""
    taken: dict[str, list[float]] = {name: [] for name in clients}
    for number in range(1 + rounds):
        for name, client in clients.items():
            before = measure_cpu(client.pids)
            for _ in range(count):
                publish(client)
            if number:
                taken[name].append((measure_cpu(client.pids) - before) / (count * per) * 1e6)
    return taken


def measure_tokens(requests: int = REQUESTS, rounds: int = ROUNDS) -> Report:
    """Measure requests without a token, with one of ours, and with a signed one."""

    def publish(client: EdgeClient) -> None:
        client.sent += 1
        body = b"<urn:sensor:1> <urn:value> <urn:reading:%d> .\n" % client.sent
        client.request("POST", "/streams/bench", body, "application/n-triples")

    with _start_token_clients() as clients:
        taken = _measure_in_turn(clients, publish, requests, rounds)
    us = {name: median(each) for name, each in taken.items()}
    return {
        **{f"{name}_us": round(value, 1) for name, value in us.items()},
        "token_check_us": round(us["token"] - us["open"], 1),
        "jwt_check_us": round(us["jwt"] - us["open"], 1),
        "rounds": {name: [round(each, 1) for each in values] for name, values in taken.items()},
    }


@contextmanager
def _start_token_clients() -> Iterator[dict[str, EdgeClient]]:
    """Start an edge that is open, one with a token of ours, and one with a key for signed tokens."""
    with make_directory() as home:
        keys, signed = _sign_token(home)
        settings = [edge_settings(home / name) for name in ("open", "token", "jwt")]
        settings[2] = replace(settings[2], jwt_keys=str(keys), jwt_issuer=_ISSUER, jwt_audience=_AUDIENCE)
        with start_edges(settings) as children:
            # The first token closes an edge for all that have none.
            wanted = orjson.dumps({"name": "bench", "allow": ["publish:bench"]})
            with closing(EdgeClient(children[1])) as administrator:
                made = administrator.request("POST", "/tokens", wanted, "application/json")
            bearers = {"token": orjson.loads(made)["token"], "jwt": signed}
            shown = {name: {"Authorization": f"Bearer {bearer}"} for name, bearer in bearers.items()}
            headers: dict[str, dict[str, str]] = {"open": {}, **shown}
            with _connect(headers, children) as clients:
                yield clients


def _sign_token(home: Path) -> tuple[Path, str]:
    """Return a file with a set of one key, and a token that is signed with it."""
    key, now = generate_private_key(SECP256R1()), int(time.time())
    public = {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "bench", "alg": "ES256", "use": "sig"}
    (home / "keys.json").write_bytes(orjson.dumps({"keys": [public]}))
    claims = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": "bench", "exp": now + 3_600, "scope": "publish:bench"}
    return home / "keys.json", jwt.encode(claims, key, "ES256", headers={"kid": "bench"})


def measure_policies() -> Report:
    """Measure events from publisher to listener with each policy; and matching for owners under it."""

    def publish(client: EdgeClient) -> None:
        first, client.sent = client.sent, client.sent + EVENTS
        body = "".join(map(_write_event, range(first, client.sent)))
        client.request("POST", "/streams/bench", body.encode(), "application/n-quads")
        client.wait_for(f"urn:bench:event:{client.sent - 1}")

    with (
        make_directory() as directory,
        start_edges([edge_settings(directory / name) for name in POLICIES]) as children,
        _connect(dict.fromkeys(POLICIES), children) as clients,
    ):
        for name, policy in POLICIES.items():
            if policy is not None:
                clients[name].request("PUT", "/policy", policy.encode(), "application/toml")
            clients[name].listen()
        edge = _measure_in_turn(clients, publish, BODIES, ROUNDS, EVENTS)
    return {"edge": _compare_policies(edge), "matching": _compare_policies(_measure_matching())}


def _measure_matching() -> dict[str, list[float]]:
    """Match the same events with subscriptions for one value each."""
    matchers = {
        name: Matcher.from_changes(_make_changes(SUBSCRIPTIONS, visibility))
        for name, visibility in VISIBILITIES.items()
    }
    taken: dict[str, list[float]] = {name: [] for name in matchers}
    for number in range(ROUNDS + 1):
        first = SUBSCRIPTIONS + 1 + number * EVENTS
        batch = make_entries(_make_row(first + each) for each in range(EVENTS))
        for name, matcher in matchers.items():
            began = time.process_time()
            matcher.match(batch)
            taken[name] += [(time.process_time() - began) / EVENTS * 1e6] if number else []
    return taken


def _make_changes(count: int, visibility: Visibility | None) -> list[RegistryChange]:
    found: dict[str, RegistryChange] = {}
    for number in range(1, count + 1):
        text = f"ASK {{ ?o <urn:bench:sensor> <urn:sensor:{number}> ; <urn:bench:value> ?v FILTER(?v > 10) }}"
        lifted = lift_request(ShapeRequest(text, False, visibility=visibility))
        made = Subscription(str(number), text, Kind.SIGNAL, lifted.shape.key, lifted.constants)
        found.setdefault("shape", RegistryChange(1, SHAPE, lifted.shape.key, lifted.shape.to_value()))
        found[made.id] = RegistryChange(number, SUBSCRIPTION, made.id, subscription_to_value(made))
    return [*found.values()]


def _compare_policies(taken: Mapping[str, Sequence[float]]) -> Report:
    us = {name: median(each) for name, each in taken.items()}
    return {
        **{f"{name}_us": round(each, 2) for name, each in us.items()},
        **{f"{name}_events_per_second": round(1e6 / each) for name, each in us.items()},
        "loss_percent": round(100 * (1 - us["open"] / max(us.values())), 1),
    }


def _make_quads(number: int) -> list[str]:
    quads = (
        (RDF_TYPE, "<urn:bench:Observation>"),
        ("<urn:bench:sensor>", f"<urn:sensor:{number % 1_000}>"),
        ("<urn:bench:value>", f'"{number % 40}"^^<{XSD}integer>'),
        ("<urn:bench:place>", f"<urn:bench:place:{number % 100}>"),
        ("<urn:bench:unit>", '"C"'),
    )
    return [f"<urn:bench:observation:{number}>\t{predicate}\t{obj}" for predicate, obj in quads]


def _write_event(number: int) -> str:
    lines = (each.replace("\t", " ") for each in _make_quads(number))
    return "".join(f"{line} <urn:bench:event:{number}> .\n" for line in lines)


def _make_row(number: int) -> Report:
    return {"position": number, "event": f"urn:bench:event:{number}", "text": "\n".join(_make_quads(number))}


PARTS: Mapping[str, Callable[[], Report]] = {
    "tokens": measure_tokens,
    "policies": measure_policies,
    "dialects": measure_dialects,
    "webhooks": measure_webhooks,
}
"""The parts by name; one after the other, so that none disturbs another."""
