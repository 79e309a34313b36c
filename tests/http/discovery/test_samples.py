"""What is counted of some events."""

from __future__ import annotations

from collections.abc import Iterator

from triplewire.http.discovery.catalog import SAMPLE_SECONDS, SAMPLES, SampleCache, count_sample
from triplewire.model.clock import ManualClock
from triplewire.model.terms import RDF_TYPE
from triplewire.security import Visibility

TEXT = "\n".join((
    f"<urn:s>\t{RDF_TYPE}\t<http://example.org/ns#Thing>",
    '<urn:s>\t<http://example.org/p/size>\t"1"',
    '<urn:t>\t<http://example.org/p/size>\t"2"',
))  # fmt: skip


def test_it_counts_triples_subjects_predicates_and_classes() -> None:
    found = count_sample([TEXT, TEXT])
    assert (found.events, found.triples, found.subjects) == (2, 6, 2)
    assert found.predicates == (("<http://example.org/p/size>", 4), (RDF_TYPE, 2))
    assert found.classes == (("<http://example.org/ns#Thing>", 2),)
    rdf = RDF_TYPE[1:-5]
    assert found.vocabularies == ["http://example.org/ns#", "http://example.org/p/", rdf]


def test_it_looks_again_after_a_while_and_forgets_the_oldest() -> None:
    looked: list[str] = []

    def rows(stream: str, visibility: Visibility | None) -> Iterator[dict[str, str]]:
        looked.append(stream)
        yield {"text": TEXT}

    clock = ManualClock()
    samples = SampleCache(rows, clock)
    assert samples.find("home", None) == samples.find("home", None)
    assert looked == ["home"]
    clock.advance(SAMPLE_SECONDS)
    samples.find("home", None)
    assert looked == ["home", "home"]
    for number in range(SAMPLES):
        samples.find(f"s{number}", None)
    samples.find("home", None)
    assert looked.count("home") == 3
