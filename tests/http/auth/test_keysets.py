"""Key sets at the door: read when they are needed, off the event loop, and not more often than that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread, current_thread, main_thread

import pytest

from tests.http.auth.harness import NQUADS, bearer
from tests.http.harness import body, house, run
from tests.security.test_jwt import RULES, claims, document, published, signed
from triplewire.model.clock import ManualClock
from triplewire.model.errors import BadRequest, Unauthenticated, Unavailable
from triplewire.security.jwt import (
    JWKS_BYTES,
    JWKS_PAUSE_SECONDS,
    JWKS_RETRY_SECONDS,
    JWKS_SECONDS,
    JwtAuthenticator,
    KeySet,
    key_set_reader,
)
from triplewire.testing.samples import event


@dataclass
class Publisher:
    """Publishes sets of keys, one after the other as a test says; None is a failure."""

    given: bytes | None
    asked: int = 0
    threads: set[bool] = field(default_factory=set)

    def read(self) -> bytes:
        self.asked += 1
        self.threads.add(current_thread() is main_thread())
        if self.given is None:
            raise OSError("nobody there")
        return self.given


def authenticator(publisher: Publisher, clock: ManualClock) -> JwtAuthenticator:
    return JwtAuthenticator(KeySet(RULES, clock), publisher.read, clock)


ONE, TWO = document(published("P-256")), document(published("P-256"), published("P-384", "two"))


def test_a_signed_token_lets_in_and_says_what_may_be_done(tmp_path: Path) -> None:
    async def scene() -> None:
        (tmp_path / "keys.json").write_bytes(ONE)
        clock = ManualClock()
        knows = JwtAuthenticator(KeySet(RULES, clock), key_set_reader(str(tmp_path / "keys.json")), clock)
        async with house(change=lambda parts: replace(parts, authenticators=(knows,))) as at:
            headers = {**bearer(signed(claims(clock))), **NQUADS}
            async with at.session.post(at.url + "/streams/home", headers=headers, data=body(event(1))) as response:
                assert response.status == 201
            problem = await at.problem("POST", "/streams/office", headers=headers, data=b"")
            assert (problem["status"], problem["detail"]) == (403, "jwt:ann has no grant for publish:office")

    run(scene())


def test_keys_are_read_once_for_many_and_off_the_loop() -> None:
    async def scene() -> None:
        clock, publisher = ManualClock(), Publisher(ONE)
        knows = authenticator(publisher, clock)
        found = await asyncio.gather(*(knows.known(signed(claims(clock))) for _ in range(20)))
        assert all(found)
        assert (publisher.asked, publisher.threads) == (1, {False})

    run(scene())


def test_nothing_is_read_for_what_is_no_signed_token() -> None:
    async def scene() -> None:
        publisher = Publisher(ONE)
        assert await authenticator(publisher, ManualClock()).known("tw_a_b") is None
        assert publisher.asked == 0

    run(scene())


def test_keys_that_are_not_known_are_asked_for_once_a_minute() -> None:
    async def scene() -> None:
        clock, publisher = ManualClock(), Publisher(ONE)
        knows, text = authenticator(publisher, clock), signed(claims(clock), "P-384", "ES384", "two")
        for _ in range(5):
            with pytest.raises(Unauthenticated):
                await knows.known(text)
        assert publisher.asked == 1
        publisher.given = TWO
        clock.advance(JWKS_PAUSE_SECONDS)
        assert await knows.known(text) is not None
        assert publisher.asked == 2

    run(scene())


def test_keys_are_read_again_now_and_then_so_that_one_can_be_taken_back() -> None:
    async def scene() -> None:
        clock, publisher = ManualClock(), Publisher(TWO)
        knows, text = authenticator(publisher, clock), signed(claims(clock, exp=2_000_000_000), "P-384", "ES384", "two")
        assert await knows.known(text) is not None
        publisher.given = ONE
        clock.advance(JWKS_SECONDS)
        with pytest.raises(Unauthenticated):
            await knows.known(text)

    run(scene())


def test_where_keys_cannot_be_read_the_old_ones_stay(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        clock, publisher = ManualClock(), Publisher(ONE)
        knows, text = authenticator(publisher, clock), signed(claims(clock, exp=2_000_000_000))
        assert await knows.known(text) is not None
        for broken in (None, b"nothing"):
            publisher.given = broken
            clock.advance(JWKS_SECONDS)
            assert await knows.known(text) is not None
        assert sum("stay as they were" in each.message for each in caplog.records) == 2
        assert text not in caplog.text

    run(scene())


def test_where_keys_were_never_read_nobody_is_told_that_the_token_is_bad() -> None:
    async def scene() -> None:
        clock, publisher = ManualClock(), Publisher(None)
        knows, text = authenticator(publisher, clock), signed(claims(clock))
        for _ in range(3):
            with pytest.raises(Unavailable):
                await knows.known(text)
        assert publisher.asked == 1
        publisher.given = ONE
        clock.advance(JWKS_RETRY_SECONDS)
        assert await knows.known(text) is not None

    run(scene())


def test_keys_come_from_an_address() -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ONE if self.path == "/keys" else b"x" * (JWKS_BYTES + 1))

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert key_set_reader(url + "/keys")() == ONE
        with pytest.raises(BadRequest, match="larger than"):
            key_set_reader(url + "/large")()
        server.shutdown()


@pytest.mark.parametrize("place", ["http://id.example/keys", "ftp://id.example/keys", "file:///etc/keys"])
def test_keys_that_anybody_could_have_sent_are_not_asked_for(place: str) -> None:
    with pytest.raises(BadRequest, match="https"):
        key_set_reader(place)
