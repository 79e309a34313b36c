"""Options of the format: what is wrong is told with what would be right."""

from __future__ import annotations

import pytest

from triplewire.model import format_position
from triplewire.model.errors import BadRequest
from triplewire.spark.dataframes.format import parse_options
from triplewire.spark.dataframes.publish import TaskPublisher


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "neither is given"),
        ({"path": "x", "url": "http://y"}, "both are given"),
        ({"path": "x", "what": "triples"}, "what must be events or quads, not 'triples'"),
        ({"path": "x", "version": "-1"}, "version must be a whole number from 0 on, not '-1'"),
        ({"path": "x", "as_of": "noon"}, "as_of must be an ISO 8601 time"),
        ({"path": "x", "max_events": "0"}, "max_events must be a whole number from 1 on"),
        ({"path": "x", "pathh": "y"}, "the option pathh is not known; there are path, url"),
        ({"url": "http://y", "version": "1"}, "version goes with path"),
        ({"url": "http://y", "after": "soon"}, "'soon' is not a position"),
        ({"url": "http://y", "stream": "no name"}, "no name"),
        ({"url": "http://y", "fail_on_gap": "no"}, "fail_on_gap must be true or false, not 'no'"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        parse_options(given)


def test_positions_are_numbers_or_tokens() -> None:
    found = parse_options({"PATH": "x", "after": "17", "through": format_position(18), "columns": "event, quads"})
    assert (found.after, found.through, found.columns) == (17, 18, ("event", "quads"))
    assert parse_options({"path": "x", "after": "earliest"}).after == 0


def test_a_token_is_for_a_broker_and_is_not_shown() -> None:
    found = parse_options({"url": "http://a", "token": "s3cret"})
    assert found.token == "s3cret"
    assert "s3cret" not in repr(found)
    assert "s3cret" not in repr(TaskPublisher("http://a", None, "key", "s3cret"))
    with pytest.raises(BadRequest, match="token goes with url") as caught:
        parse_options({"path": "lake", "token": "s3cret"})
    assert "s3cret" not in str(caught.value)
