"""Dry runs and explanations, over sockets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.harness import run
from tests.http.resources.test_routes import call, controlled
from triplewire.model import format_position
from triplewire.storage.registry.subscriptions import SUBSCRIPTION, subscription_from_change
from triplewire.testing.samples import EXAMPLE

ABOVE = f"SELECT ?o ?v {{ ?o <{EXAMPLE}result> ?v FILTER(?v > 6) }}"


def test_a_dry_run_tells_and_makes_nothing() -> None:
    async def scene() -> None:
        async with controlled() as at:
            at.append(5, 6, 7, 8)
            at.append(9, stream="other")
            wish = {"sparql": ABOVE, "kind": "bindings", "stream": "test"}
            told = await call(at, "POST", "/subscriptions?dry_run=1", 200, json=wish)
            assert (told["matched"], told["of"], told["complete"], told["tier"]) == (2, 5, True, "index")
            assert [each["event"] for each in told["examples"]] == [f"{EXAMPLE}event/{each}" for each in (8, 7)]
            assert (await call(at, "GET", "/subscriptions", 200))["subscriptions"] == []

    run(scene())


@pytest.mark.parametrize("kind", ["signal", "bindings"])
def test_the_shape_that_is_told_is_the_one_that_it_will_have(kind: str) -> None:
    async def scene() -> None:
        async with controlled() as at:
            wish = {"sparql": f"SELECT ?z {{ ?z a <urn:c> . ?y <urn:p> ?z ; <{EXAMPLE}result> 7 }}", "kind": kind}
            told = await call(at, "POST", "/subscriptions?dry_run=1", 200, json=wish)
            made = await call(at, "POST", "/subscriptions", 201, json=wish)
            change = at.twin.registry.get(SUBSCRIPTION, made["id"])
        assert change is not None
        assert subscription_from_change(change).shape == told["shape"]["key"]
        assert list(subscription_from_change(change).constants) == told["shape"]["constants"]

    run(scene())


def test_a_dry_run_of_an_instance_is_one_of_its_text() -> None:
    async def scene() -> None:
        async with controlled() as at:
            at.append(5, 6, 7, 8)
            text = f"SELECT ?o {{ ?o <{EXAMPLE}result> ?v FILTER(?v > $least) }}"
            template = {"sparql": text, "parameters": {"least": {"type": "integer"}}}
            await call(at, "PUT", "/templates/above", 200, json=template)
            wish = {"template": "above", "values": {"least": 7}}
            told = await call(at, "POST", "/subscriptions?dry_run=1", 200, json=wish)
            assert told["matched"] == 1

    run(scene())


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"json": {"sparql": "DESCRIBE <urn:x>"}}, 422),
        ({"json": [{"sparql": ABOVE}]}, 400),
        ({"data": b"{}", "headers": {"Content-Type": "application/x-ndjson"}}, 415),
    ],
)
def test_a_dry_run_refuses_what_cannot_be_made_alone(options: dict[str, Any], status: int) -> None:
    async def scene() -> None:
        async with controlled() as at:
            assert (await at.problem("POST", "/subscriptions?dry_run=1", **options))["status"] == status
            assert (await at.problem("POST", "/subscriptions?dry_run=yes", **options))["status"] == 400

    run(scene())


def test_an_event_is_explained_by_id_and_by_position() -> None:
    async def scene() -> None:
        async with controlled() as at:
            (early,) = at.append(8)
            made = await call(at, "POST", "/subscriptions", 201, json={"sparql": ABOVE, "stream": "test"})
            (high,), (low,), (other,) = at.append(7), at.append(6), at.append(9, stream="other")
            path = f"/subscriptions/{made['id']}/explain?event="
            told = await call(at, "GET", f"{path}{EXAMPLE}event/7", 200)
            assert told == await call(at, "GET", path + format_position(high), 200)
            assert (told["matched"], told["failed"], told["held"]) == (True, None, True)
            assert (told["event"], told["position"]) == (f"{EXAMPLE}event/7", format_position(high))
            assert (await call(at, "GET", path + format_position(low), 200))["failed"]["step"] == "filter"
            assert "stream" in (await call(at, "GET", path + format_position(other), 200))["failed"]["says"]
            before = await call(at, "GET", path + format_position(early), 200)
            assert (before["matched"], before["held"]) == (True, False)
            wish = {"sparql": ABOVE, "from": format_position(early)}
            looking_back = await call(at, "POST", "/subscriptions", 201, json=wish)
            before = await call(
                at, "GET", f"/subscriptions/{looking_back['id']}/explain?event={format_position(early)}", 200
            )
            assert (before["matched"], before["held"]) == (True, True)

    run(scene())


@pytest.mark.parametrize("narrowing", [{}, {"vocabulary": EXAMPLE}])
def test_what_is_entailed_counts(narrowing: dict[str, str]) -> None:
    async def scene() -> None:
        async with controlled() as at:
            body = f"<{EXAMPLE}Observation> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{EXAMPLE}Thing> ."
            options = {"data": body, "headers": {"Content-Type": "text/turtle"}}
            await call(at, "PUT", "/ontologies/things", 200, **options)
            wish = {"sparql": f"ASK {{ ?o a <{EXAMPLE}Thing> }}", **narrowing}
            meant = {**wish, "entailment": "rdfs"}
            plain, entailed = [await call(at, "POST", "/subscriptions", 201, json=each) for each in (wish, meant)]
            (place,) = at.append(7)
            query = f"explain?event={format_position(place)}"
            assert not (await call(at, "GET", f"/subscriptions/{plain['id']}/{query}", 200))["matched"]
            assert (await call(at, "GET", f"/subscriptions/{entailed['id']}/{query}", 200))["matched"]
            found = [(await call(at, "POST", "/subscriptions?dry_run=1", 200, json=each)) for each in (wish, meant)]
            assert [each["matched"] for each in found] == [0, 1]

    run(scene())


def test_an_explanation_is_for_people_too() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/subscriptions", 201, json={"sparql": ABOVE})
            (low,) = at.append(6)
            address = f"{at.url}/subscriptions/{made['id']}/explain?event={format_position(low)}"
            async with at.session.get(address, headers={"Accept": "text/plain"}) as response:
                assert response.content_type == "text/plain"
                assert (await response.text()).startswith("not matched: nothing is left after filter (?v > ")

    run(scene())


def test_what_is_not_there_is_not_explained() -> None:
    async def scene() -> None:
        async with controlled() as at:
            made = await call(at, "POST", "/subscriptions", 201, json={"sparql": ABOVE})
            path = f"/subscriptions/{made['id']}/explain"
            assert (await at.problem("GET", path))["status"] == 400
            assert (await at.problem("GET", f"{path}?event=urn:nothing"))["status"] == 404
            assert (await at.problem("GET", f"{path}?event={format_position(99)}"))["status"] == 404
            assert (await at.problem("GET", f"/subscriptions/none/explain?event={format_position(1)}"))["status"] == 404

    run(scene())
