"""A history that a client from npm reads whole and follows."""

from __future__ import annotations

from tests.http.auth.harness import closed
from tests.http.dialects.nodes import needs_node, program
from tests.http.dialects.test_ldes import FEW, SMALL, publish, small_house
from tests.http.harness import run

pytestmark = needs_node


def test_it_is_read_whole_and_in_order() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, *range(1, 15))
            async with program("read.mjs", f"{at.url}/streams/home/ldes", "ascending") as reading:
                found = await reading.rest()
        assert [each["id"] for each in found] == [f"urn:event:{number}" for number in range(1, 15)]
        # What was said of it, and its one triple in its graph.
        assert [(each["graph"], each["quads"]) for each in found] == [([str(number)], 6) for number in range(1, 15)]

    run(scene())


def test_a_client_that_knows_nothing_but_passwords_reads_with_a_token() -> None:
    async def scene() -> None:
        async with closed(segments=SMALL, limits=FEW) as at:
            publish(at.at, *range(1, 6))
            view, (_, token) = f"{at.at.url}/streams/home/ldes", at.token("consume:home")
            async with program("read.mjs", view, "ascending", f"auth=any:{token}") as reading:
                found = await reading.rest()
        assert [each["id"] for each in found] == [f"urn:event:{number}" for number in range(1, 6)]

    run(scene())


def test_it_is_followed_while_it_grows_by_nodes_and_levels() -> None:
    async def scene() -> None:
        async with small_house() as at:
            publish(at, *range(1, 23))
            async with program("read.mjs", f"{at.url}/streams/home/ldes", "follow") as reading:
                found = await reading.take(22)
                for numbers in (range(23, 24), range(24, 28), range(28, 33)):
                    publish(at, *numbers)
                    found += await reading.take(len(numbers))
        ids = [each["id"] for each in found]
        assert sorted(ids) == sorted(f"urn:event:{number}" for number in range(1, 33))

    run(scene())
