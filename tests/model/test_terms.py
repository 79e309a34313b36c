"""Terms as text: escaped exactly as the RDF library escapes them."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triplewire.model import terms

ODD = "\x00\t\n\r\b\f\x1f\x7f\x85\u2028\ufeff\ufffe\uffff\"'\\ \U0001f600"


@given(st.text())
@example(ODD)
def test_a_literal_is_written_as_the_library_writes_it(text: str) -> None:
    assert terms.literal(text) == str(ox.Literal(text))


@given(st.text(), st.sampled_from(["en", "de-at"]))
@example(ODD, "en")
def test_a_tagged_literal_too(text: str, language: str) -> None:
    term = terms.literal(text, language=language)
    assert term == str(ox.Literal(text, language=language))
    assert terms.parse_literal(term) == terms.Literal(text, terms.RDF_LANG_STRING, language)


@given(st.text(), st.sampled_from(["double", "dateTime", "string"]))
@example(ODD, "double")
def test_a_typed_literal_too(text: str, name: str) -> None:
    datatype = terms.XSD + name
    term = terms.literal(text, datatype)
    assert term == str(ox.Literal(text, datatype=ox.NamedNode(datatype)))
    assert terms.parse_literal(term) == terms.Literal(text, datatype)


@given(st.text())
@example(ODD)
def test_text_holds_no_raw_tab_or_newline(text: str) -> None:
    assert not set(terms.literal(text)) & set("\t\n\r")


def test_escapes_of_other_writers_are_understood() -> None:
    assert terms.parse_literal(r'"\u00E9\U0001F600\'"').lexical == "é😀'"


@pytest.mark.parametrize("term", ["<http://e/a>", '"open', '"a"b', '"a"^^x', "", '"a"@'])
def test_what_is_no_literal_is_refused(term: str) -> None:
    with pytest.raises(ValueError, match="not a literal"):
        terms.parse_literal(term)


def test_kinds_of_terms() -> None:
    assert terms.is_iri("<http://e/a>")
    assert not terms.is_iri('<<( <http://e/s> <http://e/p> "x" )>>')
    assert terms.is_literal('"<http://e/a>"')
    assert terms.plain("<http://e/a>") == "http://e/a"
    assert terms.plain('"a\\nb"@en') == "a\nb"
    assert terms.iri("http://e/a") == "<http://e/a>"
