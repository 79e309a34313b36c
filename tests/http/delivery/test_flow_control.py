"""The window of messages that a client has not acknowledged."""

from __future__ import annotations

import asyncio

import pytest

from triplewire.http.delivery.merger import FlowControl


def test_it_is_full_of_messages_until_some_are_acknowledged() -> None:
    window = FlowControl("0", messages=2, size=100)
    window.add("1", 10)
    assert not window.is_full()
    window.add("2", 10)
    assert window.is_full()
    assert window.acknowledge("1")
    assert (window.is_full(), window.acknowledged, len(window)) == (False, "1", 1)


def test_it_is_full_of_bytes_though_one_message_always_goes() -> None:
    window = FlowControl("0", messages=9, size=100)
    window.add("1", 1_000)
    assert window.is_full()
    window.acknowledge("1")
    window.add("2", 99)
    assert not window.is_full()
    window.add("3", 1)
    assert window.is_full()


def test_an_acknowledgement_is_of_everything_before_it() -> None:
    window = FlowControl("0", messages=3)
    for id in ("1", "2", "3"):
        window.add(id, 1)
    assert window.acknowledge("3")
    assert (len(window), window.acknowledged) == (0, "3")


@pytest.mark.parametrize("id", ["0", "4", ""])
def test_what_was_not_sent_or_was_acknowledged_before_changes_nothing(id: str) -> None:
    window = FlowControl("0", messages=2)
    window.add("1", 1)
    assert not window.acknowledge(id)
    assert (len(window), window.acknowledged) == (1, "0")


def test_who_waits_for_space_goes_on_with_an_acknowledgement_or_gives_up() -> None:
    async def scene() -> None:
        window = FlowControl("0", messages=1)
        await window.wait_for_space(9)
        window.add("1", 1)
        waiting = asyncio.create_task(window.wait_for_space(9))
        await asyncio.sleep(0)
        assert not waiting.done()
        window.acknowledge("1")
        await waiting
        window.add("2", 1)
        with pytest.raises(TimeoutError):
            await window.wait_for_space(0)

    asyncio.run(scene())
