"""What a policy on a stream costs: events a second from publisher to listener, with and without; and through
matching.

Edges take the same bodies in turn and tell them to one listener each. One has no policy, one denies a predicate that
every event has, one a class that no event has. What is told is the time of the edge's processor for an event, the
median over the rounds, and the events a second that this comes to, so that a busy machine does as well as a quiet
one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from triplewire.bench.doors_edges import edges_of, settings_in
from triplewire.bench.fanout_servers import HOST
from triplewire.bench.machine import own_seconds
from triplewire.matching.matcher import Matcher
from triplewire.matching.prepared_queries import lift_request
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.model import Kind, Subscription
from triplewire.model.errors import Unavailable
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.security import Visibility
from triplewire.security.visibility import PatternSet
from triplewire.service.processes import ChildProcess
from triplewire.storage.log.appending import entries_table
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

_DENY = '[default]\nsee = "allow"\npublish = "allow"\n[[see]]\nname = "bench"\nwho = ["*"]\ndeny.{}\n'
POLICIES = {
    "open": None,
    "predicate": _DENY.format('predicates = ["<urn:bench:place>"]'),
    "class": _DENY.format('classes = ["<urn:bench:Secret>"]'),
}
SIGHTS = {
    "open": None,
    "predicate": Visibility(predicates=PatternSet.of(["*"], ["<urn:bench:place>"])),
    "class": Visibility(classes=PatternSet.of(["*"], ["<urn:bench:Secret>"])),
}
_PLACES = 100


@dataclass(frozen=True)
class Plan:
    """So many bodies of so many events in each of so many rounds; and so many subscriptions in matching."""

    bodies: int = 20
    events: int = 500
    rounds: int = 7
    subscriptions: int = 10_000


def measure(plan: Plan) -> dict[str, Any]:
    """Microseconds of an event and events a second by policy, and what the dearest of them takes, in percent."""
    return {"edge": _edge(plan), "matching": _matching(plan)}


class Street:
    """An edge, who publishes to it, and who listens."""

    def __init__(self, child: ChildProcess, policy: str | None) -> None:
        self.child = child
        self._publisher = HTTPConnection(HOST, child.settings.port)
        if policy is not None:
            self._ask("PUT", "/policy", policy.encode(), "application/toml", 200)
        self._ear = self._listening()
        self._number = 0

    def round(self, plan: Plan) -> float:
        """Microseconds of the edge's processor for an event that is published and told."""
        before = own_seconds([self.child.pid or 0])
        for _ in range(plan.bodies):
            body = "".join(_written(self._number + each) for each in range(plan.events))
            self._number += plan.events
            self._ask("POST", "/streams/bench", body.encode(), "application/n-quads", 201)
            last = f'"event":"{_name(self._number - 1)}"'.encode()
            while last not in self._ear.readline():
                pass
        return (own_seconds([self.child.pid or 0]) - before) / (plan.bodies * plan.events) * 1e6

    def _ask(self, method: str, path: str, body: bytes, media_type: str, status: int) -> None:
        self._publisher.request(method, path, body, {"Content-Type": media_type})
        response = self._publisher.getresponse()
        answer = response.read()
        if response.status != status:
            raise Unavailable(f"{method} {path} was answered with {response.status}: {answer.decode()}")

    def _listening(self) -> HTTPResponse:
        listener = HTTPConnection(HOST, self.child.settings.port)
        listener.request("GET", "/streams/bench?format=ndjson&buffer=0")
        ear = listener.getresponse()
        ear.readline()
        return ear


def _edge(plan: Plan) -> dict[str, Any]:
    with streets() as all_of_them:
        taken: dict[str, list[float]] = {name: [] for name in all_of_them}
        for each in all_of_them.values():
            each.round(plan)
        for _ in range(plan.rounds):
            for name, each in all_of_them.items():
                taken[name].append(each.round(plan))
    return _told(taken)


@contextmanager
def streets() -> Iterator[dict[str, Street]]:
    """One for each policy."""
    with TemporaryDirectory(prefix="triplewire-bench-") as directory, ExitStack() as ending:
        children = ending.enter_context(edges_of([settings_in(Path(directory) / name) for name in POLICIES]))
        yield {name: Street(child, policy) for child, (name, policy) in zip(children, POLICIES.items(), strict=True)}


def _matching(plan: Plan) -> dict[str, Any]:
    """The same events against subscriptions for one value each, of owners who see so much."""
    matchers = {name: Matcher.of(_subscribed(plan.subscriptions, sight)) for name, sight in SIGHTS.items()}
    taken: dict[str, list[float]] = {name: [] for name in matchers}
    for number in range(plan.rounds + 1):
        first = plan.subscriptions + 1 + number * plan.events
        batch = entries_table([[_row(first + each) for each in range(plan.events)]])
        for name, matcher in matchers.items():
            began = time.process_time()
            matcher.match(batch)
            taken[name] += [(time.process_time() - began) / plan.events * 1e6] if number else []
    return _told(taken)


def _subscribed(count: int, sight: Visibility | None) -> list[RegistryChange]:
    found: dict[str, RegistryChange] = {}
    for number in range(1, count + 1):
        text = f"ASK {{ ?o <urn:bench:sensor> <urn:sensor:{number}> ; <urn:bench:value> ?v FILTER(?v > 10) }}"
        lifted = lift_request(ShapeRequest(text, False, sight=sight))
        made = Subscription(str(number), text, Kind.SIGNAL, lifted.shape.key, lifted.constants)
        found.setdefault("shape", RegistryChange(1, SHAPE, lifted.shape.key, lifted.shape.to_value()))
        found[made.id] = RegistryChange(number, SUBSCRIPTION, made.id, subscription_to_value(made))
    return [*found.values()]


def _told(taken: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    us = {name: median(each) for name, each in taken.items()}
    dearest = max(us.values())
    return {
        **{f"{name}_us": round(each, 2) for name, each in us.items()},
        **{f"{name}_events_per_second": round(1e6 / each) for name, each in us.items()},
        "loss_percent": round(100 * (1 - us["open"] / dearest), 1),
    }


def _name(number: int) -> str:
    return f"urn:bench:event:{number}"


def _quads(number: int) -> list[tuple[str, str, str]]:
    about = f"<urn:bench:observation:{number}>"
    return [
        (about, RDF_TYPE, "<urn:bench:Observation>"),
        (about, "<urn:bench:sensor>", f"<urn:sensor:{number % 1_000}>"),
        (about, "<urn:bench:value>", f'"{number % 40}"^^<{XSD}integer>'),
        (about, "<urn:bench:place>", f"<urn:bench:place:{number % _PLACES}>"),
        (about, "<urn:bench:unit>", '"C"'),
    ]


def _written(number: int) -> str:
    return "".join(f"{' '.join(each)} <{_name(number)}> .\n" for each in _quads(number))


def _row(number: int) -> tuple[Any, ...]:
    text = "\n".join(map("\t".join, _quads(number)))
    return (number, "bench", _name(number), text, None, None, 0, 0, "application/n-quads", None)
