"""What it costs an edge to find out who asks: requests without a token, with one of ours, and with a signed one.

Three edges take the same small publications in turn, over connections that stay open. What is told is the time of
the
edge's processor for a request, the median over the rounds, so that a busy machine does as well as a quiet one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from triplewire.bench.doors_edges import edges_of, settings_in
from triplewire.bench.fanout_servers import HOST
from triplewire.bench.machine import own_seconds
from triplewire.model.errors import Unavailable
from triplewire.service.processes import ChildProcess

_BODY = b"<urn:sensor:1> <urn:value> <urn:reading:%d> .\n"
_ISSUER, _AUDIENCE = "https://id.example.org", "triplewire"


@dataclass
class Visitor:
    """Publishes to one edge, showing what it was given."""

    child: ChildProcess
    headers: Mapping[str, str] = field(default_factory=dict)
    sent: int = 0

    def __post_init__(self) -> None:
        self._connection = HTTPConnection(HOST, self.child.settings.port)

    def round(self, requests: int) -> float:
        """Microseconds of the edge's processor for a request."""
        before = self._seconds()
        for _ in range(requests):
            self.publish()
        return (self._seconds() - before) / requests * 1e6

    def publish(self) -> None:
        self.sent += 1
        headers = {"Content-Type": "application/n-triples", **self.headers}
        self.ask("/streams/bench", _BODY % self.sent, headers)

    def ask(self, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """What is answered to a POST. Raises Unavailable for anything but 201."""
        self._connection.request("POST", path, body, dict(headers))
        response = self._connection.getresponse()
        found = response.read()
        if response.status != 201:
            raise Unavailable(f"POST {path} was answered with {response.status}: {found.decode()}")
        return found

    def close(self) -> None:
        self._connection.close()

    def _seconds(self) -> float:
        return own_seconds([self.child.pid or 0])


def tokens(requests: int = 1_000, rounds: int = 7) -> dict[str, Any]:
    """Microseconds of a request by what it shows, and what the checks take of it; over so many rounds of requests."""
    with visitors() as all_of_them:
        taken: dict[str, list[float]] = {name: [] for name in all_of_them}
        for each in all_of_them.values():
            each.round(requests)
        for _ in range(rounds):
            for name, each in all_of_them.items():
                taken[name].append(each.round(requests))
    us = {name: median(each) for name, each in taken.items()}
    told = {f"{name}_us": round(value, 1) for name, value in us.items()}
    return {
        **told,
        "token_check_us": round(us["token"] - us["open"], 1),
        "jwt_check_us": round(us["jwt"] - us["open"], 1),
        "rounds": {name: [round(each, 1) for each in values] for name, values in taken.items()},
    }


@contextmanager
def visitors() -> Iterator[dict[str, Visitor]]:
    """One at the edge that stands open, one with a token of ours at another, one with a signed token at a third."""
    with TemporaryDirectory(prefix="triplewire-bench-") as directory, ExitStack() as ending:
        home = Path(directory)
        keys, signed = _signed(home)
        plain = [settings_in(home / name) for name in ("open", "token", "jwt")]
        plain[2] = replace(plain[2], jwt_keys=str(keys), jwt_issuer=_ISSUER, jwt_audience=_AUDIENCE)
        children = ending.enter_context(edges_of(plain))
        shown = {"open": {}, "token": _bearer(_token(children[1])), "jwt": _bearer(signed)}
        made = {name: Visitor(child, shown[name]) for name, child in zip(shown, children, strict=True)}
        for each in made.values():
            ending.callback(each.close)
        yield made


def _token(child: ChildProcess) -> str:
    """The first token, which closes the door."""
    asked = orjson.dumps({"name": "bench", "allow": ["publish:bench"]})
    with closing(Visitor(child)) as administrator:
        made = administrator.ask("/tokens", asked, {"Content-Type": "application/json"})
    token: str = orjson.loads(made)["token"]
    return token


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _signed(home: Path) -> tuple[Path, str]:
    """A file with a set of one key, and a token that is signed with it."""
    import jwt
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from jwt.algorithms import ECAlgorithm

    key, now = generate_private_key(SECP256R1()), int(time.time())
    public = {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": "bench", "alg": "ES256", "use": "sig"}
    (home / "keys.json").write_bytes(orjson.dumps({"keys": [public]}))
    claims = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": "bench", "exp": now + 3_600, "scope": "publish:bench"}
    return home / "keys.json", jwt.encode(claims, key, "ES256", headers={"kid": "bench"})
