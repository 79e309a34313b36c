"""Bodies that are no RDF, as events and back."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import Event
from triplewire.model.events import BODY, SYNTAX, OpaquePayload, drop_opaque_payloads, parse_payload
from triplewire.rdf import N_QUADS, decode, to_nquads
from triplewire.storage.log.appending import entries_table, entry_rows
from triplewire.testing import event

BODIES = st.one_of(
    st.binary(max_size=20),
    st.lists(
        st.sampled_from(['"', "\\", "\n", "\t", "\r", "\0", "é", "𝄞", "a", "\ufffe", "\u2028", f"\t{BODY}\t"])
    ).map(lambda parts: "".join(parts).encode()),
)


@given(BODIES, st.sampled_from(["text/csv", "application/octet-stream", "text/plain; charset=utf-8"]))
@settings(max_examples=80, deadline=None)
def test_a_body_comes_back_byte_for_byte_also_by_way_of_rdf(body: bytes, media_type: str) -> None:
    cargo = OpaquePayload(media_type, body)
    text = cargo.text("urn:e")
    assert parse_payload("urn:e", text) == cargo
    assert len(list(ox.parse(to_nquads("urn:e", text).encode(), format=ox.RdfFormat.N_QUADS))) == 2
    (again,) = decode(to_nquads("urn:e", text).encode(), N_QUADS)
    assert parse_payload(again.id, again.text) == cargo


@pytest.mark.parametrize(
    "text",
    [
        f'<urn:e>\t{BODY}\t"a"',
        f'<urn:other>\t{SYNTAX}\t"text/csv"\n<urn:other>\t{BODY}\t"a"',
        f'<urn:e>\t{SYNTAX}\t"text/csv"\n<urn:e>\t{BODY}\t<urn:a>',
        f'<urn:e>\t{SYNTAX}\t<urn:a>\n<urn:e>\t{BODY}\t"a"',
        f'<urn:e>\t{SYNTAX}\t"text/csv"\n<urn:e>\t{BODY}\t"a"\n<urn:s>\t<urn:p>\t"more"',
        f'<urn:s>\t<urn:p>\t"more"\n<urn:e>\t{SYNTAX}\t"text/csv"\n<urn:e>\t{BODY}\t"a"',
    ],
)
def test_rdf_that_speaks_of_bodies_is_no_cargo(text: str) -> None:
    assert parse_payload("urn:e", text) is None


def test_cargoes_are_left_out_of_what_is_matched() -> None:
    carried = Event("urn:e", OpaquePayload("text/csv", b"a,b").text("urn:e"))
    speaking = Event("urn:f", f'<urn:s>\t{BODY}\t"a"')
    entries = entries_table(
        [list(entry_rows([("s", each) for each in (event(1), carried, speaking)], iter([1, 2, 3]), 0))]
    )
    assert drop_opaque_payloads(entries)["position"].to_pylist() == [1, 3]
    plain = entries.slice(0, 1)
    assert drop_opaque_payloads(plain) is plain
