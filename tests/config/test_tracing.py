"""Parents: the header `traceparent`, as W3C Trace Context has it."""

from __future__ import annotations

import pytest

from triplewire.config.tracing import TraceParent, current_span, enter_span, parse_parents

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("text", "sampled"),
    [
        (GOOD, True),
        (f"00-{TRACE}-{SPAN}-00", False),
        (f"00-{TRACE}-{SPAN}-03", True),
        (f"01-{TRACE}-{SPAN}-01-more", True),
    ],
)
def test_a_header_is_read(text: str, sampled: bool) -> None:
    assert TraceParent.parsed(text) == TraceParent(int(TRACE, 16), int(SPAN, 16), sampled)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        GOOD + "-more",
        GOOD.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f" {GOOD}",
    ],
)
def test_a_header_that_is_none_is_passed_over(text: str | None) -> None:
    assert TraceParent.parsed(text) is None


def test_what_was_read_is_written_as_it_was() -> None:
    assert str(TraceParent.parsed(GOOD)) == GOOD


def test_those_of_events_are_found_once_and_not_too_many() -> None:
    other = GOOD.replace("b7ad", "b7ae")
    headers = [
        '{"A":"b"}',
        None,
        f'{{"traceparent":"{GOOD}"}}',
        f'{{"traceparent":"{other}"}}',
        f'{{"traceparent":"{GOOD}"}}',
    ]
    assert [str(each) for each in parse_parents(headers, 9)] == [GOOD, other]
    assert [str(each) for each in parse_parents(headers, 1)] == [GOOD]
    assert parse_parents([f'{{"traceparent":"00-{TRACE}-{SPAN}-00"}}', '{"traceparent":"x"}'], 9) == []


def test_a_task_works_under_a_span_for_as_long_as_it_lasts() -> None:
    parent = TraceParent(1, 2)
    with enter_span(parent):
        assert current_span() == parent
    assert current_span() is None
