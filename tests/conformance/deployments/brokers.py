"""A deployment as a client sees it that knows nothing but its address: calls, names of its own, and tidying up."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
import orjson

PROBLEM = "application/problem+json"
SOURCE = "Source-Id"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return orjson.loads(self.body)


@dataclass
class Broker:
    """Everything that is published through it has one source, by which it is erased at the end."""

    url: str
    session: aiohttp.ClientSession
    patience: float = 60.0
    mark: str = field(default_factory=lambda: f"conformance-{uuid.uuid4().hex[:12]}")
    made: list[str] = field(default_factory=list)
    """Addresses of what is to be deleted at the end."""
    _count: int = 0

    def name(self) -> str:
        """One that nothing else has."""
        self._count += 1
        return f"{self.mark}-{self._count}"

    def iri(self) -> str:
        return f"urn:uuid:{uuid.uuid4()}"

    async def call(self, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401 - the session's own
        async with self.session.request(method, self.url + path, allow_redirects=False, **options) as response:
            return Answer(response.status, response.headers, await response.read())

    async def expect(self, status: int, method: str, path: str, **options: Any) -> Answer:  # noqa: ANN401
        """The answer, which must have a status."""
        answer = await self.call(method, path, **options)
        told = answer.body[:300].decode(errors="replace")
        assert answer.status == status, f"{method} {path} is answered {answer.status}, not {status}: {told}"
        return answer

    async def problem(self, status: int, method: str, path: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401
        """The problem document (RFC 9457) that a request must be answered with."""
        answer = await self.expect(status, method, path, **options)
        assert answer.media_type == PROBLEM, f"a problem is told as {answer.media_type}"
        document: dict[str, Any] = answer.json()
        assert {"type", "title", "status", "detail"} <= document.keys(), document
        assert document["status"] == status, document
        return document

    async def publish(
        self, stream: str, body: str | bytes, type: str = "text/turtle", **headers: str
    ) -> dict[str, Any]:
        """The receipt of what is now durable."""
        said = {SOURCE: self.mark, "Content-Type": type, **{k.replace("_", "-"): v for k, v in headers.items()}}
        data = body.encode() if isinstance(body, str) else body
        receipt: dict[str, Any] = (await self.expect(201, "POST", f"/streams/{stream}", data=data, headers=said)).json()
        return receipt

    async def subscribe(self, **wish: object) -> dict[str, Any]:
        made: dict[str, Any] = (await self.expect(201, "POST", "/subscriptions", json=wish)).json()
        self.made.append(f"/subscriptions/{made['id']}")
        return made

    async def token(self, *allow: str, expires: str | None = None) -> dict[str, Any]:
        """One that is made for somebody else."""
        order = {"name": self.mark, "allow": allow} | ({"expires": expires} if expires else {})
        made: dict[str, Any] = (await self.expect(201, "POST", "/tokens", json=order)).json()
        self.made.append(f"/tokens/{made['id']}")
        return made

    @asynccontextmanager
    async def by(self, token: str | None) -> AsyncIterator[Broker]:
        """The same deployment, as somebody else comes to it. What they publish has the same source."""
        async with session_of(token) as session:
            yield replace(self, session=session)

    @asynccontextmanager
    async def opened(self, path: str, **headers: str) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that need not end."""
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.get(self.url + path, headers=said) as response:
            assert response.status == 200, f"GET {path} is answered {response.status}: {await response.text()}"
            yield response

    @asynccontextmanager
    async def socket(self, path: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        async with self.session.ws_connect(self.url + path) as socket:
            yield socket

    async def erase(self, id: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self.expect(202, "DELETE", f"/events/{quote(id, safe='')}")).json()
        return found

    async def tidy(self) -> None:
        """Delete what was made, and erase what was published."""
        with suppress(aiohttp.ClientError, OSError):
            for path in reversed(self.made):
                await self.call("DELETE", path)
            await self.call("DELETE", "/events?" + urlencode({"source": self.mark, "by": "conformance"}))


def session_of(token: str | None) -> aiohttp.ClientSession:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10))


@asynccontextmanager
async def broker_at(url: str, token: str | None = None, patience: float = 60.0) -> AsyncIterator[Broker]:
    """For as long as the checks last; it is tidied up afterwards, whatever became of them."""
    async with session_of(token) as session:
        broker = Broker(url.rstrip("/"), session, patience)
        try:
            yield broker
        finally:
            await broker.tidy()
