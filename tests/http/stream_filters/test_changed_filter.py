"""The filter `changed`."""

from __future__ import annotations

import pytest

from tests.http.stream_filters.entries import entries
from triplewire.http.stream_filters.plugins import ChangedFilter, apply_plugin
from triplewire.model import Event
from triplewire.model.events import OpaquePayload

CARGO = OpaquePayload("text/plain", b"<urn:a>\t<urn:state>\t1").text("urn:e")


def told(*lines: str) -> Event:
    return Event("urn:e", "\n".join("\t".join(f"<urn:{word}>" for word in line.split()) for line in lines))


def passed(filter: ChangedFilter, *events: Event) -> list[bool]:
    found: list[bool] = apply_plugin(filter, entries(events)).tolist()
    return found


def test_only_another_value_passes_across_batches() -> None:
    filter = ChangedFilter("urn:state")
    assert passed(filter, told("a state on"), told("a state on"), told("a state off")) == [True, False, True]
    assert passed(filter, told("a state off"), told("b state off"), told("a state on")) == [False, True, True]


def test_several_values_are_one_set_and_several_subjects_are_told_apart() -> None:
    filter = ChangedFilter("<urn:state>")
    assert passed(filter, told("a state x", "a state y"), told("a state y", "a state x")) == [True, False]
    assert passed(filter, told("a state x"), told("a state x", "b state x"), told("b state x")) == [True, True, False]


def test_what_says_nothing_of_the_property_does_not_pass() -> None:
    filter = ChangedFilter("urn:state")
    assert passed(filter, told("a other on"), told("state a on"), Event("urn:e", CARGO)) == [False, False, False]


def test_it_remembers_the_last_subjects_only() -> None:
    filter = ChangedFilter("urn:state", most="2")
    assert passed(filter, *(told(f"{name} state on") for name in "abcbca")) == [True, True, True, False, False, True]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("state",), "property must be an IRI"),
        (("urn:state", "0"), "most must be a number from 1 to 100000, not '0'"),
        (("urn:state", "100001"), "most must be a number"),
        (("urn:state", "-1"), "most must be a number"),
    ],
)
def test_what_it_cannot_be_made_with_is_told(given: tuple[str, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        ChangedFilter(*given)
