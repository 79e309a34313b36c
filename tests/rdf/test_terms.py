"""Terms from their parts."""

from __future__ import annotations

import pytest

from triplewire.model.terms import XSD, literal
from triplewire.rdf.terms import make_iri, make_literal


def test_they_are_written_as_everywhere() -> None:
    assert make_iri("urn:a") == "<urn:a>"
    assert make_literal('a "b"\n\t\\') == literal('a "b"\n\t\\')
    assert make_literal("1", XSD + "integer") == literal("1", XSD + "integer")
    assert make_literal("a", XSD + "string") == '"a"'
    assert make_literal("a", language="en") == '"a"@en'


@pytest.mark.parametrize("address", ["a", "", "urn:a b", "urn:<a>"])
def test_what_is_no_iri_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        make_iri(address)
    with pytest.raises(ValueError, match=r".+"):
        make_literal("a", address)


def test_what_is_no_tag_is_refused() -> None:
    with pytest.raises(ValueError, match=r".+"):
        make_literal("a", language="not a tag")
