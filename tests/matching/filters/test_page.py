"""The page on filters: its examples do what it says."""

from __future__ import annotations

import orjson
import pytest

from tests.docs import pages
from tests.matching.filters.worlds import World, event, loaded
from triplewire.matching.filters import BAG_ELEMENTS, FILTER_CONSTRAINTS, FILTERS, RELATIONS

PAGE = pages.DOCS / "filters.md"


@pytest.mark.parametrize(("block", "wanted"), [(0, True), (1, False)], ids=["satisfied", "not satisfied"])
def test_the_session_goes_as_it_says(block: int, wanted: bool) -> None:
    ontology, published = pages.blocks(PAGE, "turtle")
    documents = orjson.loads(pages.blocks(PAGE, "json")[block])
    assert len(documents) > 5
    found = World([event(published)], [loaded(ontology)]).matches(documents)
    assert found == ({(0, number) for number in range(len(documents))} if wanted else set())


def test_every_operator_is_told() -> None:
    assert {name for name in RELATIONS if f"`{name}`" not in PAGE.read_text()} == set()


def test_the_limits_are_those_that_hold() -> None:
    told = f"{FILTERS} filters, {FILTER_CONSTRAINTS} constraints or {BAG_ELEMENTS} elements"
    assert told in PAGE.read_text()
