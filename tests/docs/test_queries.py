"""The page on continuous queries: its requests, one after the other, are answered as it says."""

from __future__ import annotations

import re

import pytest

from tests.docs import pages
from tests.docs.test_subscriptions import Exchange
from tests.http.harness import run
from tests.http.resources.test_query_routes import controlled
from triplewire.http.openapi.documents import QueryRequestDocument
from triplewire.sparql import parse_registration

PAGE = pages.DOCS / "queries.md"

_REQUEST = re.compile(r"^```http\n(.*?)^```", re.MULTILINE | re.DOTALL)
_ANSWER = re.compile(r"^```json\n(.*?)^```", re.MULTILINE | re.DOTALL)


def exchanges() -> list[Exchange]:
    """A request, and the answer that comes before the next one."""
    _, *parts = re.split(r"(?=^```http\n)", PAGE.read_text(), flags=re.MULTILINE)
    return [Exchange(_REQUEST.findall(part)[0], "".join(_ANSWER.findall(part)[:1])) for part in parts]


def test_every_request_is_answered_as_the_page_says() -> None:
    async def scene() -> None:
        async with controlled() as at:
            at.append(1, stream="street")
            made = ""
            for each in exchanges():
                made = (await each.run(at, made)).get("id", made)

    run(scene())


def test_every_field_is_on_the_page() -> None:
    (table,) = re.findall(r"^## Fields\n(.*?)^## ", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    heads = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    named = {name for head in heads for name in re.findall(r"`(\w+)`", head)}
    assert named == set(QueryRequestDocument.names())


@pytest.mark.parametrize("window", re.findall(r"^\| `(\[.*?\])`", PAGE.read_text(), re.MULTILINE))
def test_every_window_is_one(window: str) -> None:
    text = f"REGISTER RSTREAM <s> AS SELECT * FROM NAMED WINDOW <w> ON <home> {window} {{ WINDOW <w> {{ ?s ?p ?o }} }}"
    assert len(parse_registration(text).windows) == 1
