"""Sources, applications and vocabularies of a batch, held against an engine that we did not write."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.http.stream_filters.entries import entries
from triplewire.http.stream_filters.parameters import StreamFilter, StreamView
from triplewire.http.stream_filters.plugins import FilterBatch
from triplewire.model import Event, EventHeaders
from triplewire.model.events import OpaquePayload
from triplewire.model.terms import RDF_TYPE, iri, literal

A, B = "http://a.example/", "http://b.example/ns#"
TERMS = [iri(f"{A}C"), iri(f"{B}C"), iri(A), literal(f"{A}C"), literal("tab\tand\nline <http://a.example/"), RDF_TYPE]
PREDICATES = [RDF_TYPE, iri(f"{A}p"), iri(f"{B}p"), iri("http://a.example"), iri("urn:p")]
SUBJECTS = [iri(f"{A}s"), iri("urn:s"), RDF_TYPE]
BEGINNINGS = [A, B, f"{A}C", "http://a.example", "http:", "urn:", "http://a.example/C/", RDF_TYPE[1:-1]]


def generated(seed: int, number: int) -> Event:
    random = Random(f"{seed} {number}")
    lines = {
        "\t".join((random.choice(SUBJECTS), random.choice(PREDICATES), random.choice(TERMS)))
        for _ in range(random.randint(1, 5))
    }
    headers = EventHeaders(random.choice([None, "roof", "cellar"]), random.choice([None, "x", "y"]))
    return Event(f"urn:event:{number}", "\n".join(sorted(lines)), headers)


def meant(event: Event, beginning: str) -> bool:
    begins = f'STRSTARTS(STR(?n), "{beginning}")'
    used = f"{{ ?s ?n ?o FILTER({begins}) }} UNION {{ ?s a ?n FILTER(isIRI(?n) && {begins}) }}"
    return oracle.matches(event, f"SELECT ?n {{ {used} }}")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.sampled_from(BEGINNINGS), min_size=1, max_size=3, unique=True))
def test_a_vocabulary_is_what_predicates_and_classes_begin_with(seed: int, beginnings: list[str]) -> None:
    events = [generated(seed, number) for number in range(12)]
    mask = FilterBatch(entries(events)).passing(StreamView("test", StreamFilter(vocabulary=tuple(beginnings))))
    assert mask.tolist() == [any(meant(event, each) for each in beginnings) for event in events]


@pytest.mark.parametrize(
    "sieve",
    [
        StreamFilter(source=("roof",)),
        StreamFilter(source=("attic", "cellar")),
        StreamFilter(application=("x", "y")),
        StreamFilter(source=("cellar", "roof"), application=("y",)),
    ],
)
def test_headers_are_those_of_the_event(sieve: StreamFilter) -> None:
    events = [generated(7, number) for number in range(40)]
    wanted = [
        (not sieve.source or event.headers.source in sieve.source)
        and (not sieve.application or event.headers.application in sieve.application)
        for event in events
    ]
    assert FilterBatch(entries(events)).passing(StreamView("test", sieve)).tolist() == wanted
    assert 0 < sum(wanted) < 40


def test_only_its_stream_is_meant() -> None:
    batch = FilterBatch(entries([generated(1, 1)], stream="other"))
    assert batch.passing(StreamView("test")).tolist() == [False]
    assert batch.passing(StreamView("other")).tolist() == [True]


def test_what_is_no_rdf_has_no_vocabulary() -> None:
    carried = Event(
        "urn:event:1", OpaquePayload("text/plain", b"hello").text("urn:event:1"), EventHeaders(source="roof")
    )
    batch = FilterBatch(entries([carried, generated(1, 1)]))
    assert batch.passing(StreamView("test", StreamFilter(vocabulary=("http", "urn")))).tolist() == [False, True]
    assert batch.passing(StreamView("test", StreamFilter(source=("roof",)))).tolist()[0]


def test_a_batch_without_events_passes_nothing() -> None:
    assert not len(FilterBatch(entries([])).passing(StreamView("test", StreamFilter(vocabulary=("http",)))))
