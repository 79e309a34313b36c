"""Examples: programs, queries and data on the pages are what the code takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import orjson
import pytest

from tests.docs import pages
from tests.storage.lake.test_delta import entries
from triplewire.http.resources.subscription_requests import SubscriptionRequest
from triplewire.model import Event, EventHeaders
from triplewire.rdf import TRIG, TURTLE, decode
from triplewire.sparql import parse_query, parse_registration
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.ports import CommitBatch

README = pages.ROOT / "README.md"
SOSA = "http://www.w3.org/ns/sosa/"
PROGRAMS = [(page, block) for page in pages.PAGES for block in pages.blocks(page, "python")]
QUERIES = [
    (page, block) for page in pages.PAGES for block in pages.blocks(page, "sparql") if page.name != "matching.md"
]


@pytest.mark.parametrize(
    ("page", "block"), PROGRAMS, ids=lambda value: pages.name(value) if value in pages.PAGES else ""
)
def test_programs_compile(page: Path, block: str) -> None:
    compile(block, pages.name(page), "exec")


@pytest.mark.parametrize(
    ("page", "block"), QUERIES, ids=lambda value: pages.name(value) if value in pages.PAGES else ""
)
def test_queries_parse(page: Path, block: str) -> None:
    assert parse_registration(block).query.form in ("select", "ask", "construct", "describe")


def curls() -> dict[str, list[str]]:
    """The requests of the session in the README, by the address that they ask."""
    found = {}
    for block in pages.blocks(README, "sh"):
        text = block.partition("$(")[2].rpartition(" | ")[0] or block
        if text.startswith("curl"):
            words = shlex.split(text)
            (address,) = [word for word in words if word.startswith("localhost:8080")]
            found[address.removeprefix("localhost:8080")] = words
    return found


def test_the_session_of_the_readme_is_taken() -> None:
    requests = curls()
    whole = "/streams/home?after=earliest"
    assert set(requests) == {"/subscriptions", "/subscriptions/$ID/notifications", "/streams/home", "/sparql", whole}
    assert requests[whole][-1] == "Accept: application/trig"
    wish = SubscriptionRequest.from_json(orjson.loads(requests["/subscriptions"][-1]))
    assert parse_query(wish.sparql or "").projection == ("sensor", "value")
    (event,) = decode(requests["/streams/home"][-1].encode(), TURTLE, EventHeaders())
    assert len(event.quads) == 2
    assert parse_query(requests["/sparql"][-1].removeprefix("query=")).projection == ("event", "when", "value")


def test_the_data_of_the_quickstart_are_two_events() -> None:
    (block,) = pages.blocks(pages.DOCS / "quickstart.md", "trig")
    assert [event.id for event in decode(block.encode(), TRIG, EventHeaders())] == [
        "http://example.org/event-1",
        "http://example.org/event-2",
    ]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lake with one warm and one cold reading, where the examples look for it."""
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "triplewire-data" / "lake" / "quads"
    events = [Event(f"urn:e{value}", f"<urn:o>\t<{SOSA}hasSimpleResult>\t{_double(value)}") for value in (31, 12)]
    DeltaLake(table).commit(CommitBatch("q", 0, 7), [FileWriter(table).write(entries(*events))])


@pytest.mark.usefixtures("lake")
def test_the_programs_that_read_the_lake_do(capsys: pytest.CaptureFixture[str]) -> None:
    arrow, duck = pages.blocks(pages.DOCS / "lake.md", "python")
    names: dict[str, object] = {}
    exec(compile(arrow, "lake.md", "exec"), names)
    found = names["high"]
    assert found.to_pylist()[0]["object_number"] == 31.0  # type: ignore[attr-defined]
    assert found.num_rows == 1  # type: ignore[attr-defined]
    exec(compile(duck, "lake.md", "exec"), {})
    said = capsys.readouterr().out
    assert said.startswith("7\n")
    assert "test" in said


def _double(value: int) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#double>'
