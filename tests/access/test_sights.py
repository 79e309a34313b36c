"""What a sight leaves of an event, by the pictures in the module."""

from __future__ import annotations

import pytest

from triplewire.access.scopes import Scope
from triplewire.access.sights import BLIND, WHOLE, Sight
from triplewire.model.terms import RDF_TYPE

P, Q, C, D = "<urn:p>", "<urn:q>", "<urn:C>", "<urn:D>"
TEXT = "\n".join(
    [
        f"<urn:a>\t{RDF_TYPE}\t{C}",
        f'<urn:a>\t{P}\t"1"',
        f"<urn:b>\t{RDF_TYPE}\t{D}",
        f"<urn:b>\t{Q}\t<urn:a>",
        f'<urn:c>\t{P}\t"says {Q} and {C}"',
    ]
)


def without(*patterns: str) -> Scope:
    return Scope.of(["*"], patterns)


def lines(text: str | None) -> list[int]:
    """The numbers of the lines that are left."""
    return [TEXT.split("\n").index(each) for each in text.split("\n")] if text else []


@pytest.mark.parametrize(
    ("sight", "left"),
    [
        (WHOLE, [0, 1, 2, 3, 4]),
        (Sight(predicates=without(Q)), [0, 1, 2, 4]),
        (Sight(predicates=without(P)), [0, 2, 3]),
        (Sight(predicates=without("<urn:*")), [0, 2]),
        (Sight(predicates=without(RDF_TYPE)), [1, 3, 4]),
        (Sight(predicates=Scope.of([P])), [1, 4]),
        (Sight(predicates=Scope.of(["<urn:*"], [Q])), [1, 4]),
        (Sight(classes=without(C)), [2, 4]),
        (Sight(classes=without(D)), [0, 1, 4]),
        (Sight(classes=without("<urn:*")), [4]),
        (Sight(classes=Scope.of([D])), [2, 4]),
        (Sight(classes=Scope.of([])), [4]),
        (Sight(classes=without(C), predicates=without(RDF_TYPE)), [4]),
        (Sight(classes=without(C), predicates=without(P)), [2]),
        (Sight(classes=without("<urn:E>"), predicates=without("<urn:r>")), [0, 1, 2, 3, 4]),
        (Sight(classes=without(C, D), predicates=without(P)), []),
        (BLIND, [0, 1, 2, 3, 4]),
    ],
)
def test_quads_out_of_sight_are_not_there(sight: Sight, left: list[int]) -> None:
    assert lines(sight.visible(TEXT)) == left
    assert Sight.from_json(sight.to_json()) == sight


def test_an_event_of_which_nothing_is_in_sight_is_not_there() -> None:
    assert Sight(predicates=without(P)).visible(f'<urn:a>\t{P}\t"1"') is None


def test_streams_and_graphs_hide_events_whole() -> None:
    sight = Sight(streams=Scope.of(["city-*"], ["city-north"]), graphs=without("<urn:secret:*"))
    assert sight.redacted("city-south", "urn:open:1", TEXT) == TEXT
    assert sight.redacted("city-north", "urn:open:1", TEXT) is None
    assert sight.redacted("home", "urn:open:1", TEXT) is None
    assert sight.redacted("city-south", "urn:secret:1", TEXT) is None
    assert BLIND.redacted("home", "urn:open:1", TEXT) is None


def test_triple_terms_are_seen_by_those_who_see_all_predicates_and_classes() -> None:
    text = f'<urn:a>\t{P}\t<<( <urn:b> {Q} "1" )>>\n<urn:a>\t{P}\t"<<"'
    assert Sight(streams=Scope.of(["s"])).visible(text) == text
    for sight in (Sight(predicates=without("<urn:other>")), Sight(classes=without("<urn:other>"))):
        assert sight.visible(text) == f'<urn:a>\t{P}\t"<<"'


def test_sights_of_nothing_are_one() -> None:
    assert Sight(predicates=Scope.of([])).within(Scope()) == Sight(classes=without(C)).within(Scope.of([])) == BLIND
