"""Beginnings: what `from` may be, and the position that it comes to."""

from __future__ import annotations

import pytest

from tests.http.harness import run
from tests.http.resources.test_routes import call, controlled
from triplewire.http.resources.subscription_requests import BackfillStart, BackfillStarts, SubscriptionRequest
from triplewire.model import format_position
from triplewire.model.errors import InvalidField
from triplewire.testing import TWIN_KINDS, open_twin, publication

START = "2023-11-14T22:13:20Z"
"""Where the clock of tests begins."""


@pytest.mark.parametrize("kind", TWIN_KINDS)
@pytest.mark.parametrize(
    ("given", "position"),
    [
        ("earliest", 0),
        (format_position(1), 1),
        (format_position(7), 7),
        ("0001-01-01T00:00:00Z", 1),
        ("2023-11-14T22:13:20Z", 1),
        ("2023-11-14T22:13:21Z", 1),
        ("2023-11-14T22:13:21.000001Z", 2),
        ("2023-11-14T23:13:22+01:00", 2),
        ("2023-11-14T22:13:22.5Z", 3),
        ("2023-11-14T22:13:24.5Z", 6),
        ("2023-11-14T22:13:25Z", 6),
        ("2023-11-14T22:13:25.25Z", 8),
    ],
)
def test_what_is_said_comes_to_a_position(kind: str, given: str, position: int) -> None:
    with open_twin(kind) as stores:
        for number in range(5):
            stores.clock.advance(1)
            stores.log.append([publication(number)])
            if number in (1, 3):
                stores.registry.put([("other", "x", {})])
        stores.clock.advance(0.5)
        found = BackfillStarts(stores.log, stores.clock).position(BackfillStart.from_json(given))
        later = stores.log.read(max(0, found - 1), 9, 9)["position"].to_pylist()
    assert (found, later) == (position, [each for each in (1, 2, 4, 5, 7) if each >= position])


@pytest.mark.parametrize("given", [format_position(2), "2023-11-14T22:13:20.000001Z", "2999-12-31T00:00:00-14:00"])
def test_the_future_is_refused(given: str) -> None:
    with open_twin("memory") as stores:
        stores.log.append([publication(1)])
        with pytest.raises(InvalidField, match=r"from must be a (position up to|time in the past)"):
            BackfillStarts(stores.log, stores.clock).position(BackfillStart.from_json(given))


@pytest.mark.parametrize(
    "given",
    [
        *(
            "",
            "latest",
            "now",
            "1",
            format_position(1).upper() + "0",
            "-0000000000000001",
            "ffffffffffffffff",
            1,
            1.5,
            True,
            [],
            {},
        ),
        *("2023-11-14", "2023-11-14T22:13:20", "2023-11-14 22:13:20Z", "22:13:20Z", "2023-02-30T00:00:00Z"),
        *("2023-11-14T25:13:20Z", "20231114T221320Z", "99999-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
    ],
)
def test_other_words_are_refused_with_what_is_accepted(given: object) -> None:
    with pytest.raises(InvalidField, match=r"from must be `earliest`, a position.* or a time with its zone") as refused:
        SubscriptionRequest.from_json({"sparql": "ASK {}", "from": given})
    assert refused.value.field == "from"


def test_no_from_is_no_from() -> None:
    assert SubscriptionRequest.from_json({"sparql": "ASK {}", "from": None}).begins is None


def test_it_is_told_with_the_subscription() -> None:
    async def scene() -> None:
        async with controlled() as at:
            at.append(1, 2, 3)
            at.twin.clock.advance(1)
            at.append(4)
            for given, shown in (
                ("earliest", "earliest"),
                (format_position(2), format_position(2)),
                ("2023-11-14T22:13:21Z", format_position(4)),
            ):
                made = await call(at, "POST", "/subscriptions", 201, json={"stream": "a", "from": given})
                assert made["from"] == shown
                assert (await call(at, "GET", f"/subscriptions/{made['id']}", 200))["from"] == shown
            listed = (await call(at, "GET", "/subscriptions", 200))["subscriptions"]
            assert [each["from"] for each in listed] == ["earliest", format_position(2), format_position(4)]
            refused = await at.problem("POST", "/subscriptions", json={"stream": "a", "from": format_position(99)})
            assert (refused["status"], refused["field"]) == (422, "from")
            assert f"up to {format_position(at.twin.log.head())}" in refused["detail"]

    run(scene())


def test_lines_of_a_bulk_have_each_their_own() -> None:
    async def scene() -> None:
        async with controlled() as at:
            at.append(1, 2, 3)
            body = b'{"stream": "a", "from": "earliest"}\n{"stream": "a", "from": "soon"}\n{"stream": "a"}\n'
            headers = {"Content-Type": "application/x-ndjson"}
            async with at.session.post(at.url + "/subscriptions", data=body, headers=headers) as response:
                told = (await response.text()).splitlines()
            assert [("error" in each, '"field":"from"' in each) for each in told] == [
                (False, False),
                (True, True),
                (False, False),
            ]
            listed = (await call(at, "GET", "/subscriptions", 200))["subscriptions"]
            assert [each.get("from") for each in listed] == ["earliest", None]

    run(scene())


def test_a_dry_run_counts_from_there() -> None:
    async def scene() -> None:
        async with controlled() as at:
            at.append(1, 2, 3)
            at.twin.clock.advance(7_200)
            at.append(4)
            for begins, matched in ((None, 1), ("earliest", 4), (format_position(3), 2), (START, 4)):
                wish = {"stream": "test", "from": begins}
                told = await call(at, "POST", "/subscriptions?dry_run=1", 200, json=wish)
                assert (told["matched"], told["of"], told["complete"]) == (matched, matched, True)
            refused = await at.problem(
                "POST", "/subscriptions?dry_run=1", json={"stream": "a", "from": format_position(99)}
            )
            assert (refused["status"], refused["field"]) == (422, "from")
            assert at.twin.registry.list("subscription") == []

    run(scene())
