"""Certificates: TLS over real sockets, with certificates that somebody else issues and replaces."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import aiohttp
import pytest
import trustme
import uvloop
from cryptography import x509

from tests.http.harness import Ear, Echo, Restless, body, data, run
from triplewire.config.status import Heartbeat
from triplewire.http.app import EdgeParts, application
from triplewire.http.auth import Sessions, TokenAuthenticator
from triplewire.http.listeners import Certificates, open_listeners
from triplewire.http.resources.access_control import TokenManager, TokenRequest
from triplewire.http.server import serve_on
from triplewire.http.workers import Worker
from triplewire.model.errors import BadRequest
from triplewire.storage.log.group_commit import GroupCommit
from triplewire.storage.registry.security import TokenCache
from triplewire.testing import open_twin
from triplewire.testing.samples import event

NQUADS = {"Content-Type": "application/n-quads"}


@dataclass(frozen=True)
class Office:
    """Issues certificates into the two files that an edge reads."""

    folder: Path
    authority: trustme.CA

    @property
    def files(self) -> tuple[Path, Path]:
        return self.folder / "edge.pem", self.folder / "edge.key"

    def issue(self) -> int:
        """Replace both files as renewals do; the serial number."""
        issued = self.authority.issue_cert("localhost", "127.0.0.1")
        certificate, key = (path.with_suffix(path.suffix + ".new") for path in self.files)
        certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())
        os.replace(certificate, self.files[0])
        os.replace(key, self.files[1])
        return x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes()).serial_number

    @property
    def trust(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def office(authority: trustme.CA, tmp_path: Path) -> Office:
    made = Office(tmp_path, authority)
    made.issue()
    return made


@asynccontextmanager
async def serving(
    certificates: Certificates, change: Callable[[EdgeParts], EdgeParts] = lambda parts: parts
) -> AsyncIterator[int]:
    """The port of an edge that speaks TLS, on two sockets of one port as `up` opens them."""
    with open_twin("memory") as stores:
        commits = GroupCommit(stores.log)
        watch = Restless()
        parts = EdgeParts(
            commits, stores.log, stores.registry, stores.outbox(""), Echo(), watch, watch, Heartbeat, stores.clock
        )
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        sockets = open_listeners("127.0.0.1", 0)
        sockets += open_listeners("127.0.0.1", sockets[0].getsockname()[1])
        task = asyncio.create_task(
            serve_on(application(change(parts)), sockets, stop=stop, ready=port.set_result, certificates=certificates)
        )
        try:
            yield await port
        finally:
            stop.set()
            await task
            commits.close()


async def shown(port: int, trust: ssl.SSLContext, name: str | None = None) -> int:
    """The serial number of the certificate that a new connection gets."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=name or "127.0.0.1")
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return x509.load_der_x509_certificate(found).serial_number


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_stream_is_told_over_tls(office: Office, loop: object) -> None:
    async def scene() -> None:
        connector = aiohttp.TCPConnector(ssl=office.trust)
        async with (
            serving(Certificates(*office.files)) as port,
            aiohttp.ClientSession(f"https://localhost:{port}", connector=connector) as session,
            session.get("/streams/test") as response,
        ):
            ear = Ear(response)
            await ear.position()
            async with session.post("/streams/test", data=body(event(1), event(2)), headers=NQUADS) as published:
                assert published.status == 201
            assert [data(each)["event"] for each in await ear.take(2)] == [event(1).id, event(2).id]

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.wait_for(scene(), 30))


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_who_listens_over_tls_is_sent_away_when_the_token_is_revoked(office: Office, loop: object) -> None:
    async def scene() -> None:
        made: list[TokenManager] = []

        def shut(parts: EdgeParts) -> EdgeParts:
            made.append(TokenManager(parts.registry, parts.clock))
            ring = TokenCache(parts.registry, lambda: True)
            knows = TokenAuthenticator(ring, parts.clock)
            return replace(parts, authenticators=(knows,), sessions=Sessions(parts.clock, ring.newest, knows.is_valid))

        connector = aiohttp.TCPConnector(ssl=office.trust)
        async with (
            serving(Certificates(*office.files), shut) as port,
            aiohttp.ClientSession(f"https://localhost:{port}", connector=connector) as session,
        ):
            token, text = made[0].create(TokenRequest("screen", ("consume",)))
            headers = {"Authorization": f"Bearer {text}"}
            async with session.get("/streams/test", headers=headers) as response:
                await Ear(response).position()
                made[0].revoke(token.id)
                with pytest.raises(aiohttp.ClientError):
                    await response.read()
            async with session.get("/streams/test", headers=headers) as response:
                assert response.status == 401

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        runner.run(asyncio.wait_for(scene(), 30))


def test_websockets_work_over_tls(office: Office) -> None:
    async def scene() -> None:
        connector = aiohttp.TCPConnector(ssl=office.trust)
        async with (
            serving(Certificates(*office.files)) as port,
            aiohttp.ClientSession(f"https://localhost:{port}", connector=connector) as session,
            session.ws_connect("/streams/test") as socket,
        ):
            assert "position" in (await socket.receive_json())
            async with session.post("/streams/test", data=body(event(1)), headers=NQUADS) as published:
                assert published.status == 201
            assert (await socket.receive_json())["event"] == event(1).id

    run(scene())


def test_curl_trusts_it_by_the_authority_alone(office: Office) -> None:
    async def scene() -> tuple[int | None, int | None, bytes]:
        office.authority.cert_pem.write_to_path(str(office.folder / "ca.pem"))
        async with serving(Certificates(*office.files)) as port:
            url = f"https://localhost:{port}/"
            doubts = await asyncio.create_subprocess_exec("curl", "-s", url, stdout=-1)
            await doubts.communicate()
            trusts = await asyncio.create_subprocess_exec(
                "curl", "-s", "--cacert", str(office.folder / "ca.pem"), url, stdout=-1
            )
            told, _ = await trusts.communicate()
            return doubts.returncode, trusts.returncode, told

    doubts, trusts, told = run(scene())
    assert (doubts, trusts) == (60, 0)
    assert b"triplewire" in told.lower()


def test_new_connections_get_a_new_certificate_and_old_ones_stay(office: Office) -> None:
    async def scene() -> None:
        first = office.issue()
        certificates = Certificates(*office.files)
        connector = aiohttp.TCPConnector(ssl=office.trust)
        async with (
            serving(certificates) as port,
            aiohttp.ClientSession(f"https://localhost:{port}", connector=connector) as session,
            session.get("/streams/test") as response,
        ):
            ear = Ear(response)
            await ear.position()
            assert await shown(port, office.trust) == first
            second = office.issue()
            certificates.reload()
            assert await shown(port, office.trust) == second
            assert await shown(port, office.trust, "localhost") == second
            async with session.post("/streams/test", data=body(event(1)), headers=NQUADS) as published:
                assert published.status == 201
            assert data(await ear.next())["event"] == event(1).id

    run(scene())


def test_it_looks_by_itself(office: Office) -> None:
    async def scene() -> None:
        certificates = Certificates(*office.files)
        async with serving(certificates) as port:
            worker = Worker("certificates", partial(asyncio.to_thread, certificates.reload), 0.001)
            worker.start()
            second = office.issue()
            while await shown(port, office.trust) != second:
                pass
            await worker.stop()

    run(scene())


def _garbage(office: Office) -> None:
    office.files[0].write_text("-----BEGIN CERTIFICATE-----\nnothing\n")


def _another_key(office: Office) -> None:
    office.files[1].write_bytes(office.authority.issue_cert("localhost").private_key_pem.bytes())


def _gone(office: Office) -> None:
    office.files[1].unlink()


@pytest.mark.parametrize("spoil", [_garbage, _another_key, _gone])
def test_files_that_cannot_be_used_leave_the_old_certificate(
    office: Office, spoil: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        first = office.issue()
        certificates = Certificates(*office.files)
        async with serving(certificates) as port:
            spoil(office)  # type: ignore[operator]
            assert not certificates.reload()
            assert await shown(port, office.trust) == first
            told = [each for each in caplog.records if "is not renewed" in each.message]
            assert len(told) == 1
            second = office.issue()
            assert certificates.reload()
            assert await shown(port, office.trust) == second

    run(scene())


@pytest.mark.parametrize("spoil", [_garbage, _another_key, _gone])
def test_an_edge_does_not_begin_with_files_that_cannot_be_used(office: Office, spoil: object) -> None:
    spoil(office)  # type: ignore[operator]
    with pytest.raises(BadRequest, match="TLS cannot be offered with"):
        Certificates(*office.files)


def test_old_versions_of_the_protocol_are_refused(office: Office) -> None:
    assert Certificates(*office.files).context.minimum_version >= ssl.TLSVersion.TLSv1_2
