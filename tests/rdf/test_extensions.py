"""Extensions: what a publisher adds of its own comes back from wherever it is written, and from nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event, EventHeaders, StreamEvent
from triplewire.model.errors import BadRequest
from triplewire.rdf import N_QUADS, decode_addressed, encode_addressed
from triplewire.rdf.headers import EXTENSIONS, extensions_from_json, extensions_to_json

NAMES = ("X-One", "Relay-Path", "geo", "X.2")
VALUES = ("", "a", 'b "c" \\', "é, 𝄞", "null", "{}", "<urn:a> .", "\\u0041")
ANY_EXTENSIONS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES))


@given(ANY_EXTENSIONS)
@settings(max_examples=60, deadline=None)
def test_any_extensions_are_read_back(extensions: dict[str, str]) -> None:
    assert extensions_from_json("it", extensions_to_json(extensions)) == extensions
    event = Event("urn:e", "<urn:s>\t<urn:p>\t<urn:o>", EventHeaders(extensions=extensions))
    ((said, found),) = decode_addressed(encode_addressed([StreamEvent("home", event)]), N_QUADS)
    assert (said.stream, found) == ("home", event)


def test_none_are_no_text() -> None:
    assert (extensions_to_json({}), extensions_from_json("it", None), extensions_from_json("it", "{}")) == (
        None,
        {},
        {},
    )
    assert b"extensions" not in encode_addressed([StreamEvent("home", Event("urn:e", "<urn:s>\t<urn:p>\t<urn:o>"))])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it must be a JSON object"),
        ("[]", "it must be a JSON object"),
        ('{"X-A": 1}', "it must be a JSON object of at most 32 texts"),
        (str(extensions_to_json({f"X-{number}": "" for number in range(EXTENSIONS + 1)})), "at most 32 texts"),
        ('{"X A": ""}', "'X A' is not a name for an extension header"),
        ('{"Event-Id": "urn:x"}', "'Event-Id' is not a name for an extension header"),
        ('{"X-A": "a\\r\\nX-B: b"}', "the header X-A holds printable text"),
    ],
)
def test_what_could_not_be_sent_on_is_refused(text: str, told: str) -> None:
    with pytest.raises(BadRequest, match=told):
        extensions_from_json("it", text)
