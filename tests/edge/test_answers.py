"""The SPARQL protocol at the door of history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.edge.houses import house, run
from triplewire import errors
from triplewire.config import limits

QUERY = "SELECT * { ?s ?p 'é+&' }"


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("GET", {"params": {"query": QUERY}}),
        ("POST", {"data": {"query": QUERY}}),
        ("POST", {"data": QUERY.encode(), "headers": {"Content-Type": "application/sparql-query"}}),
        ("GET", {"params": {"query": QUERY}, "headers": {"Accept": "text/html, application/*;q=0.5"}}),
    ],
)
def test_a_query_is_taken_each_way_of_the_protocol(method: str, options: dict[str, Any]) -> None:
    async def scene() -> None:
        async with house() as at, at.session.request(method, at.url + "/sparql", **options) as response:
            assert response.status == 200
            assert response.content_type == "application/sparql-results+json"
            assert (await response.json(content_type=None))["text"] == QUERY

    run(scene())


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"params": {"query": QUERY}, "headers": {"Accept": "text/csv"}}, 406),
        ({"params": {}}, 400),
        ({"params": {"query": ""}}, 400),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], status: int) -> None:
    async def scene() -> None:
        async with house() as at:
            assert (await at.problem("GET", "/sparql", **options))["status"] == status

    run(scene())


def test_other_bodies_and_large_queries_are_refused() -> None:
    async def scene() -> None:
        async with house() as at:
            found = await at.problem("POST", "/sparql", data=b"x", headers={"Content-Type": "text/plain"})
            assert found["status"] == 415
            assert "application/sparql-query" in found["known"]
            large = {"query": "#" * (limits.QUERY_BYTES + 1)}
            assert (await at.problem("POST", "/sparql", data=large))["limit"] == limits.QUERY_BYTES

    run(scene())


class Refusing:
    def __init__(self, error: errors.TriplewireError) -> None:
        self._error = error

    async def answer(self, text: str) -> Mapping[str, Any]:
        raise self._error


def test_what_history_refuses_is_told_with_its_place() -> None:
    async def scene() -> None:
        answers = Refusing(errors.Unsupported("SERVICE", place=errors.Place(2, 3)))
        async with house(change=lambda parts: replace(parts, answers=answers)) as at:
            found = await at.problem("GET", "/sparql", params={"query": QUERY})
            assert (found["status"], found["construct"], found["line"], found["column"]) == (422, "SERVICE", 2, 3)

    run(scene())
