"""Canonical N-Quads in compiled code against the parser of the RDF library."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from triplewire.kernels.nquads import EVENT_LINES, IRI_BYTES, split_canonical
from triplewire.model.errors import TriplewireError
from triplewire.rdf import N_QUADS, decode

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

PLAIN_IRIS = ["<urn:a>", "<urn:a:b>", "<http://a.example/b>", "<https://a.example:80/c?d=e#f>", "<http://a.example#b>"]
ODD_IRIS = [
    *("<a>", "<>", "<urn:>", "<urn:a b>", "<urn:a%zz>", "<urn:a%20b>", "<http:///a>", "<http://>", "<http://a:b>"),
    *(
        "<http://[::1]/>",
        "<http://[::1>",
        "<http://a:99999/>",
        "<urn:a\\u0062>",
        "<urn:ä>",
        "<urn:a#b#c>",
        "<http://a?b?c>",
    ),
    *(
        "<HTTP://A/>",
        "<mailto:a@b>",
        "<urn:a<b>",
        "<http://a..b/>",
        "<http://-/>",
        "<http://a:/>",
        "<urn:-a>",
        "<urn:.>",
    ),
    "_:b",
    f"<urn:{'a' * IRI_BYTES}>",
]
PLAIN_LITERALS = ['"a"', '""', '"a b . <c>"', f'"1"^^<{XSD}integer>', f'"01"^^<{XSD}integer>', '"x"^^<urn:t>']
ODD_LITERALS = [
    *('"a"@en', '"a"@EN-us', '"a\\tb"', '"a\\n"', '"\\u0041"', '"a\tb"', '"ä"', '"a', "'a'", '"""a"""', '"a"^<urn:t>'),
    *(
        f'"a"^^<{XSD}string>',
        f'"a"^^<{RDF}langString>',
        f'"<a/>"^^<{RDF}XMLLiteral>',
        '"a"^^<t>',
        '"a"^^"b"',
        "1",
        '"\x7f"',
    ),
    "<< <urn:s> <urn:p> <urn:o> >>",
]

plain_lines = st.builds(
    "{} {} {} {} .\n".format,
    *(st.sampled_from(PLAIN_IRIS), st.sampled_from(PLAIN_IRIS)),
    *(st.sampled_from(PLAIN_IRIS + PLAIN_LITERALS), st.sampled_from(PLAIN_IRIS)),
)
odd_lines = st.builds(
    "{}{}{}{}{}{}{}{}{}".format,
    *(st.sampled_from(PLAIN_IRIS + ODD_IRIS), st.sampled_from([" ", "\t", "  ", ""])),
    *(st.sampled_from(PLAIN_IRIS + ODD_IRIS), st.sampled_from([" ", "\t"])),
    *(st.sampled_from(PLAIN_IRIS + PLAIN_LITERALS + ODD_IRIS + ODD_LITERALS), st.sampled_from([" ", ""])),
    *(st.sampled_from([*PLAIN_IRIS, *ODD_IRIS, ""]), st.sampled_from([" .", ".", "", " . # a"])),
    st.sampled_from(["\n", "\r\n", "", "\n\n"]),
)
bodies = st.lists(plain_lines | odd_lines, min_size=1, max_size=6).map("".join)


def _decoded(body: bytes) -> list[tuple[str, str]] | None:
    try:
        return [(event.id, event.text) for event in decode(body, N_QUADS)]
    except TriplewireError:
        return None


def _split(body: bytes) -> list[tuple[str, str]] | None:
    found = split_canonical(body)
    return None if found is None else list(zip(found.ids, found.texts.to_pylist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(bodies)
@example("")
@example("\n")
@example(" .\n")
def test_what_is_understood_is_what_the_parser_finds(body: str) -> None:
    found = _split(body.encode())
    assert found is None or found == _decoded(body.encode())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.integers(0, 120), st.integers(0, 8))
def test_damaged_bodies_are_read_as_by_the_parser_or_not_at_all(junk: bytes, at: int, length: int) -> None:
    whole = b'<urn:a> <urn:p> "x" <urn:g> .\n<urn:b> <http://p.example/q> <urn:o> <urn:g> .\n'
    whole += b'<urn:c> <urn:p> "y" <urn:h> .\n'
    body = whole[:at] + junk + whole[at + length :]
    found = _split(body)
    assert found is None or found == _decoded(body)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLAIN_IRIS), st.sampled_from(PLAIN_LITERALS)), min_size=1, unique=True))
def test_canonical_bodies_are_understood(pairs: list[tuple[str, str]]) -> None:
    body = "".join(f"{iri} <urn:p> {literal} <urn:g:{iri[1:-1]}> .\n" for iri, literal in sorted(pairs)).encode()
    assert _split(body) == _decoded(body)


def test_what_the_parser_has_to_decide_is_left_to_it() -> None:
    line = "<urn:s> <urn:p> {} <urn:{}> .\n".format
    for body in (
        line('"x"', "g") * 2,
        line('"x"', "g") + line('"x"', "h") + line('"y"', "g"),
        "".join(line(f'"{n}"', "g") for n in range(EVENT_LINES + 1)),
        *(line(term, "g") for term in ODD_LITERALS),
        *(f"{iri} <urn:p> <urn:o> <urn:g> .\n" for iri in ("_:b", "<a>", "<urn:a%20b>", f"<urn:{'a' * IRI_BYTES}>")),
    ):
        assert _split(body.encode()) is None, body[:80]
