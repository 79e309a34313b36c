"""What a visibility leaves of an event, by the pictures in the module."""

from __future__ import annotations

import pytest

from triplewire.model.terms import RDF_TYPE
from triplewire.security.visibility import ALL_VISIBLE, NONE_VISIBLE, PatternSet, Visibility

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


def without(*patterns: str) -> PatternSet:
    return PatternSet.of(["*"], patterns)


def lines(text: str | None) -> list[int]:
    """The numbers of the lines that are left."""
    return [TEXT.split("\n").index(each) for each in text.split("\n")] if text else []


@pytest.mark.parametrize(
    ("visibility", "left"),
    [
        (ALL_VISIBLE, [0, 1, 2, 3, 4]),
        (Visibility(predicates=without(Q)), [0, 1, 2, 4]),
        (Visibility(predicates=without(P)), [0, 2, 3]),
        (Visibility(predicates=without("<urn:*")), [0, 2]),
        (Visibility(predicates=without(RDF_TYPE)), [1, 3, 4]),
        (Visibility(predicates=PatternSet.of([P])), [1, 4]),
        (Visibility(predicates=PatternSet.of(["<urn:*"], [Q])), [1, 4]),
        (Visibility(classes=without(C)), [2, 4]),
        (Visibility(classes=without(D)), [0, 1, 4]),
        (Visibility(classes=without("<urn:*")), [4]),
        (Visibility(classes=PatternSet.of([D])), [2, 4]),
        (Visibility(classes=PatternSet.of([])), [4]),
        (Visibility(classes=without(C), predicates=without(RDF_TYPE)), [4]),
        (Visibility(classes=without(C), predicates=without(P)), [2]),
        (Visibility(classes=without("<urn:E>"), predicates=without("<urn:r>")), [0, 1, 2, 3, 4]),
        (Visibility(classes=without(C, D), predicates=without(P)), []),
        (NONE_VISIBLE, [0, 1, 2, 3, 4]),
    ],
)
def test_hidden_quads_are_not_there(visibility: Visibility, left: list[int]) -> None:
    assert lines(visibility.visible(TEXT)) == left
    assert Visibility.from_json(visibility.to_json()) == visibility


def test_an_event_of_which_nothing_is_visible_is_not_there() -> None:
    assert Visibility(predicates=without(P)).visible(f'<urn:a>\t{P}\t"1"') is None


def test_streams_and_graphs_hide_events_whole() -> None:
    visibility = Visibility(streams=PatternSet.of(["city-*"], ["city-north"]), graphs=without("<urn:secret:*"))
    assert visibility.redacted("city-south", "urn:open:1", TEXT) == TEXT
    assert visibility.redacted("city-north", "urn:open:1", TEXT) is None
    assert visibility.redacted("home", "urn:open:1", TEXT) is None
    assert visibility.redacted("city-south", "urn:secret:1", TEXT) is None
    assert NONE_VISIBLE.redacted("home", "urn:open:1", TEXT) is None


def test_triple_terms_are_seen_by_those_who_see_all_predicates_and_classes() -> None:
    text = f'<urn:a>\t{P}\t<<( <urn:b> {Q} "1" )>>\n<urn:a>\t{P}\t"<<"'
    assert Visibility(streams=PatternSet.of(["s"])).visible(text) == text
    for visibility in (Visibility(predicates=without("<urn:other>")), Visibility(classes=without("<urn:other>"))):
        assert visibility.visible(text) == f'<urn:a>\t{P}\t"<<"'


def test_visibility_of_nothing_are_one() -> None:
    assert (
        Visibility(predicates=PatternSet.of([])).within(PatternSet())
        == Visibility(classes=without(C)).within(PatternSet.of([]))
        == NONE_VISIBLE
    )
