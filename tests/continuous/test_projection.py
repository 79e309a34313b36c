"""Constructions: one event for each query and position, with what all its solutions make."""

from __future__ import annotations

import pyarrow as pa

from triplewire.continuous.projection import construct_events
from triplewire.continuous.structures import query_structure
from triplewire.model import MATCHES
from triplewire.model.subscriptions import ContinuousQuery
from triplewire.sparql.rspql import parse_registration

TEXT = "CONSTRUCT { ?a <urn:near> ?b } WHERE { ?a <urn:in> ?r . ?b <urn:in> ?r }"
STRUCTURE = query_structure(parse_registration(TEXT), distinct=False)
QUERY = ContinuousQuery("q", TEXT, group=7, into="near", since=3)


def matches(*rows: tuple[int, int, float, str, str]) -> pa.Table:
    values = [
        {"position": at, "group": group, "value": oldest, "terms": ["0", *_ordered(a, b)]}
        for at, group, oldest, a, b in rows
    ]
    return pa.Table.from_pylist(values, schema=MATCHES)


def _ordered(a: str, b: str) -> list[str]:
    return [{"a": a, "b": b}[name] for name in STRUCTURE.projection]


def texts(found: pa.Table, query: ContinuousQuery = QUERY) -> list[tuple[str, str, str]]:
    return [(stream, each.id, each.text) for stream, each in construct_events(found, {7: (query, STRUCTURE)})]


def test_what_one_event_completes_is_one_event() -> None:
    found = matches(
        (5, 7, 4.0, "<urn:x>", "<urn:y>"), (5, 7, 4.0, "<urn:y>", "<urn:x>"), (6, 7, 5.0, "<urn:x>", "<urn:x>")
    )

    assert texts(found) == [
        (
            "near",
            "urn:triplewire:answer:q:0000000000000005",
            "<urn:x>\t<urn:near>\t<urn:y>\n<urn:y>\t<urn:near>\t<urn:x>",
        ),
        ("near", "urn:triplewire:answer:q:0000000000000006", "<urn:x>\t<urn:near>\t<urn:x>"),
    ]


def test_what_is_older_than_the_query_or_of_others_makes_nothing() -> None:
    found = matches((5, 7, 3.0, "<urn:x>", "<urn:y>"), (5, 8, 5.0, "<urn:x>", "<urn:y>"))

    assert texts(found) == []
    assert texts(MATCHES.empty_table()) == []


def test_a_literal_is_no_subject() -> None:
    assert texts(matches((5, 7, 4.0, '"x"', "<urn:y>"))) == []
