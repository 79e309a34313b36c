"""Terms from their parts."""

from __future__ import annotations

import pytest

from triplewire.codec.terms import checked_iri, checked_literal
from triplewire.model.terms import XSD, literal


def test_they_are_written_as_everywhere() -> None:
    assert checked_iri("urn:a") == "<urn:a>"
    assert checked_literal('a "b"\n\t\\') == literal('a "b"\n\t\\')
    assert checked_literal("1", XSD + "integer") == literal("1", XSD + "integer")
    assert checked_literal("a", XSD + "string") == '"a"'
    assert checked_literal("a", language="en") == '"a"@en'


@pytest.mark.parametrize("address", ["a", "", "urn:a b", "urn:<a>"])
def test_what_is_no_iri_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        checked_iri(address)
    with pytest.raises(ValueError, match=r".+"):
        checked_literal("a", address)


def test_what_is_no_tag_is_refused() -> None:
    with pytest.raises(ValueError, match=r".+"):
        checked_literal("a", language="not a tag")
