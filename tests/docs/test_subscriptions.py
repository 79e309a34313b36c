"""The page on subscriptions: its requests, one after the other, are answered as it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from tests.docs import pages
from tests.http.harness import House, run
from tests.http.resources.test_routes import controlled

PAGE = pages.DOCS / "subscriptions.md"

_EXCHANGE = re.compile(r"^```http\n(.*?)^```(?:\n```json\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Exchange:
    """A request of the page and, where the page tells it, the answer."""

    request: str
    answer: str

    async def run(self, at: House, made: str) -> Any:  # noqa: ANN401
        """What is answered, after it was held against the page."""
        head, _, body = self.request.partition("\n\n")
        (call, *headers) = head.strip().splitlines()
        method, path = call.replace("{id}", made).split(" ")
        given = dict(header.split(": ") for header in headers)
        async with at.session.request(method, at.url + path, data=body.encode(), headers=given) as response:
            text = await response.read()
        expected = orjson.loads(self.answer) if self.answer else {}
        assert response.status == expected.get("status", response.status), text
        assert response.status < 300 or "status" in expected, text
        found = [orjson.loads(line) for line in text.splitlines()]
        assert expected.items() <= (found[-1] if found else {}).items(), text
        return found[-1] if found else {}


EXCHANGES = [Exchange(*found) for found in _EXCHANGE.findall(PAGE.read_text())]


def test_the_requests_of_the_page_are_answered_as_it_says() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = ""
            for exchange in EXCHANGES:
                made = (await exchange.run(at, made)).get("id", made)

    run(scene())
    assert len(EXCHANGES) > 3
