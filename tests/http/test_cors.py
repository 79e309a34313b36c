"""Threat: a page that somebody opens asks an edge which only their browser can reach, with what the browser has, and
reads the answers. What stops it: no page of another origin is let in unless the deployment names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.http.harness import house, run

PAGE = "https://example.org"
ALLOW, EXPOSE = "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"


def asked(origins: tuple[str, ...], origin: str | None, path: str = "/streams/-", **headers: str) -> Mapping[str, str]:
    """The headers of the answer to a page, or to a program, that asks."""

    async def scene() -> Mapping[str, str]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given |= {} if origin is None else {"Origin": origin}
        async with (
            house(change=lambda parts: replace(parts, origins=origins)) as at,
            at.session.request("OPTIONS" if headers else "GET", at.url + path, headers=given) as response,
        ):
            return {**response.headers, "status": str(response.status)}

    return run(scene())


@pytest.mark.parametrize("path", ["/streams/test", "/streams/-", "/nowhere"])
@pytest.mark.parametrize("origins", [(PAGE, "http://other"), ("*",)])
def test_a_page_that_may_reads_answers_and_problems(origins: tuple[str, ...], path: str) -> None:
    told = asked(origins, PAGE, path)
    assert (told[ALLOW], told["Vary"]) == (PAGE, "Origin")
    assert "Position" in told[EXPOSE]


@pytest.mark.parametrize(("origins", "origin"), [((), PAGE), (("http://other",), PAGE), ((PAGE,), None)])
def test_other_pages_and_programs_are_told_nothing(origins: tuple[str, ...], origin: str | None) -> None:
    told = asked(origins, origin)
    assert ALLOW not in told
    assert ("Vary" in told) == bool(origins)


def test_a_browser_that_asks_first_is_told_what_may_be_sent() -> None:
    asking = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "content-type, event-id"}
    told = asked((PAGE,), PAGE, **asking)
    assert told["status"] == "204"
    assert told["Access-Control-Allow-Headers"] == "content-type, event-id"
    assert "POST" in told["Access-Control-Allow-Methods"]
    refused = asked((), PAGE, **asking)
    assert (refused["status"], ALLOW in refused) == ("405", False)
