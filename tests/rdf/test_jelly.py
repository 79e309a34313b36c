"""Jelly, read and written by pyjelly on the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import pairwise
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyjelly import jelly
from pyjelly.integrations.generic.generic_sink import (
    IRI,
    BlankNode,
    DefaultGraph,
    Literal,
    Quad,
    Triple,
)
from pyjelly.integrations.generic.parse import parse_jelly_grouped
from pyjelly.integrations.generic.serialize import (
    GenericSinkTermEncoder,
    GraphStream,
    QuadStream,
    SerializerOptions,
    Stream,
    TripleStream,
    stream_frames,
)
from pyjelly.options import (
    LookupPreset,
    StreamParameters,
)
from pyjelly.serialize.ioutils import write_delimited

from triplewire.model import Event, EventHeaders
from triplewire.model.errors import BadRequest, BodyTooLarge, InputError
from triplewire.rdf import new_id
from triplewire.rdf.envelopes import JELLY
from triplewire.rdf.jelly import encode_frame
from triplewire.rdf.jelly.frames import JELLY_FRAME_BYTES

XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = [
    "<http://example.org/a>", "<http://example.org/b#c>", "<urn:x>", "<http://example.org/>",
    '"plain"', '"a\\n\\"é\\\\"', '"x"@en',
    f'"1"^^<{XSD}integer>', f'"1.5"^^<{XSD}double>', '""', "_:b0",
    '<<( <urn:s> <urn:p> "x"@en )>>', '<<( <urn:s> <urn:p> <<( <urn:a> <urn:b> "1" )>> )>>',
]  # fmt: skip


def theirs(data: bytes) -> list[set[str]]:
    """What pyjelly reads of frames, as N-Quads."""
    return [{_line(each) for each in sink.store} for sink in parse_jelly_grouped(BytesIO(data))]


def _line(quad: Any) -> str:  # noqa: ANN401
    graph = "" if quad.g == DefaultGraph else f" {_term(quad.g)}"
    return f"{_term(quad.s)} {_term(quad.p)} {_term(quad.o)}{graph} ."


def _term(term: Any) -> str:  # noqa: ANN401
    if isinstance(term, Triple):
        return f"<<( {_term(term.s)} {_term(term.p)} {_term(term.o)} )>>"
    if isinstance(term, IRI):
        return f"<{term._iri}>"
    if isinstance(term, BlankNode):
        return f"_:{term._identifier}"
    type = None if term._datatype is None else ox.NamedNode(term._datatype)
    return str(ox.Literal(term._lex, language=term._langtag) if term._langtag else ox.Literal(term._lex, datatype=type))


@settings(max_examples=60, deadline=None)
@given(
    frames=st.lists(
        st.lists(
            st.tuples(
                st.sampled_from([each for each in TERMS if each[0] in "<_" and not each.startswith("<<")]),
                st.sampled_from(["<http://example.org/p>", "<urn:p>"]),
                st.sampled_from(TERMS),
                st.sampled_from(["", "<urn:g>", "<http://example.org/g>"]),
            )
        ),
        min_size=1,
        max_size=4,
    ),
    first=st.integers(0, 3),
)
def test_every_frame_is_read_without_those_before(frames: list[list[tuple[str, str, str, str]]], first: int) -> None:
    texts = [["{} {} {} {} .\n".format(*quad).replace("  .", " .") for quad in frame] for frame in frames][first:]
    data = b"".join(encode_frame("".join(each)) for each in texts)
    wanted = [{line.strip() for line in each} for each in texts]
    assert (theirs(data) if texts else []) == wanted


def test_tables_that_are_full_begin_again() -> None:
    lines = [f'<http://p{n}.example.org/n{n}> <urn:p> "x"^^<urn:t{n % 50}> <urn:g> .\n' for n in range(9_000)]
    (found,) = theirs(encode_frame("".join(lines)))
    assert found == {line.strip() for line in lines}


def written(kind: type[Stream], frames: Sequence[Sequence[Any]], logical: int, **options: Any) -> bytes:  # noqa: ANN401
    """Frames that pyjelly writes, in one stream."""
    preset = options.pop("preset", LookupPreset())
    given = SerializerOptions(
        logical_type=logical, params=StreamParameters(rdf_star=True, **options), lookup_preset=preset
    )
    stream, sink = kind(encoder=GenericSinkTermEncoder(lookup_preset=preset), options=given), BytesIO()
    for frame in frames:
        for each in stream_frames(stream, (one for one in frame)):
            write_delimited(each, sink)
    return sink.getvalue()


def read(data: bytes, *cuts: int) -> list[list[Event] | InputError]:
    cutter, found = JELLY.cutter(), list[list[Event] | InputError]()
    bounds = [0, *sorted(min(each, len(data)) for each in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(bounds)]
    for cut in [each for piece in pieces for each in cutter.feed(piece)] + list(cutter.end()):
        try:
            found.append(JELLY.read(cut.data, EventHeaders(), new_id))
        except InputError as error:
            found.append(error)
    return found


S, P, G, H = IRI("urn:s"), IRI("urn:p"), IRI("urn:g"), IRI("urn:h")
QUADS = [[Quad(S, P, Literal("1"), G)], [Quad(S, P, Literal("2"), H), Quad(S, P, Literal("3", "en"), H)]]


@pytest.mark.parametrize("kind", [QuadStream, GraphStream])
def test_a_frame_of_datasets_is_a_message(kind: type[Stream]) -> None:
    data = written(kind, QUADS, jelly.LOGICAL_STREAM_TYPE_DATASETS)
    for cuts in ((), (1,), (2, 30), range(len(data))):
        (first,), (second,) = read(data, *cuts)  # type: ignore[misc]
        assert (first.id, first.text, first.headers.syntax) == (
            "urn:g", '<urn:s>\t<urn:p>\t"1"', "application/x-jelly-rdf",
        )  # fmt: skip
        assert (second.id, second.text) == ("urn:h", '<urn:s>\t<urn:p>\t"2"\n<urn:s>\t<urn:p>\t"3"@en')


def test_a_frame_of_graphs_is_a_message() -> None:
    frames = [[Triple(S, P, BlankNode("a b"))], [Triple(BlankNode("a b"), P, Literal("1", None, "urn:t"))]]
    (first,), (second,) = read(written(TripleStream, frames, jelly.LOGICAL_STREAM_TYPE_GRAPHS))  # type: ignore[misc]
    assert first.text.startswith("<urn:s>\t<urn:p>\t<urn:triplewire:genid:")
    assert second.text.endswith('\t<urn:p>\t"1"^^<urn:t>')
    assert first.text.split("\t")[2] != second.text.split("\t")[0]


def test_frames_of_a_flat_stream_are_one_document() -> None:
    data = written(
        QuadStream, [[*QUADS[0], *QUADS[1], Quad(S, P, Literal("9"), G)]], jelly.LOGICAL_STREAM_TYPE_FLAT_QUADS
    )
    ((first, second),) = read(data)  # type: ignore[misc]
    assert (first.id, first.text.count("\n"), second.id) == ("urn:g", 1, "urn:h")


def test_one_frame_may_come_without_its_length() -> None:
    frame = jelly.RdfStreamFrame.FromString(encode_frame('<urn:s> <urn:p> "1" <urn:g> .\n')[1:])
    ((found,),) = read(frame.SerializeToString())  # type: ignore[misc]
    assert found.id == "urn:g"


def test_what_is_told_can_be_published_again() -> None:
    tw = "https://triplewire.dev/ns#"
    text = f'<urn:g> <{tw}source> "roof" .\n<urn:s> <urn:p> "1" <urn:g> .\n'
    ((found,),) = read(encode_frame(text, {"type": b"event"}) + b"\x00")  # type: ignore[misc]
    assert (found.id, found.headers.source, found.text) == ("urn:g", "roof", '<urn:s>\t<urn:p>\t"1"')


@pytest.mark.parametrize(
    "quad",
    [
        Quad(IRI('urn:x> <urn:y> "injected" <urn:z> .\n<urn:x'), P, S, G),
        Quad(S, IRI("no scheme"), S, G),
        Quad(S, P, Literal("x", 'en . "'), G),
        Quad(S, P, Literal("x", None, "urn:t> <urn:g"), G),
        Quad(Literal("x"), P, S, G),
        Quad(Triple(S, P, S), P, S, G),
    ],
)
def test_what_is_no_rdf_is_refused_alone(quad: Any) -> None:  # noqa: ANN401
    """The threat: terms are any text, which would be read as other statements where it is written down."""
    data = written(QuadStream, [[quad], QUADS[0]], jelly.LOGICAL_STREAM_TYPE_DATASETS)
    bad, good = read(data)
    assert isinstance(bad, InputError)
    assert not isinstance(good, InputError)
    assert good[0].text == '<urn:s>\t<urn:p>\t"1"'


def _options(**given: int) -> Any:  # noqa: ANN401
    base = {"physical_type": 2, "logical_type": 4, "max_name_table_size": 8, "max_datatype_table_size": 8, "version": 1}
    return jelly.RdfStreamRow(options=jelly.RdfStreamOptions(**{**base, **given}))


def _delimited(*rows: Any) -> bytes:  # noqa: ANN401
    sink = BytesIO()
    write_delimited(jelly.RdfStreamFrame(rows=rows), sink)
    return sink.getvalue()


def _bomb() -> bytes:
    """A literal of 64 kB, which two thousand rows of four bytes say again."""
    first = jelly.RdfQuad(
        s_bnode="a", p_iri=jelly.RdfIri(name_id=1), o_literal=jelly.RdfLiteral(lex="x" * 65536), g_bnode="g"
    )
    name = jelly.RdfStreamRow(name=jelly.RdfNameEntry(value="urn:p"))
    again = jelly.RdfStreamRow(quad=jelly.RdfQuad())
    return _delimited(_options(), name, jelly.RdfStreamRow(quad=first), *[again] * 2_000)


def _deep() -> bytes:
    term = jelly.RdfTriple(s_bnode="a", p_bnode="b", o_bnode="c")
    for _ in range(30):
        term = jelly.RdfTriple(s_bnode="a", p_bnode="b", o_triple_term=term)
    data = term.SerializeToString()
    for _ in range(2_000):  # more than can be built
        data = b"\x62" + _length(len(data)) + data
    return b"".join((_length(len(data) + 8), b"\x0a", _length(len(data)), b"\x12", data))


_SEVENTH = jelly.RdfIri(name_id=7)


def _length(size: int) -> bytes:
    found = bytearray()
    while size > 0x7F:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*found, size])


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: b"\xff" * 20, BadRequest),
        (lambda: b"\x05hello", BadRequest),
        (lambda: encode_frame("<urn:s> <urn:p> <urn:o> .\n")[:-1], BadRequest),
        (lambda: _length(JELLY_FRAME_BYTES + 1) + b"\x0a\x00", BodyTooLarge),
        (lambda: _delimited(_options(max_name_table_size=4_000_000_000)), BadRequest),
        (lambda: _delimited(_options(physical_type=1)), BadRequest),
        (lambda: _delimited(_options(), jelly.RdfStreamRow(quad=jelly.RdfQuad())), BadRequest),
        (lambda: _delimited(_options(), jelly.RdfStreamRow(quad=jelly.RdfQuad(s_iri=_SEVENTH))), BadRequest),
        (lambda: _delimited(_options(), jelly.RdfStreamRow(name=jelly.RdfNameEntry(id=900, value="x"))), BadRequest),
        (lambda: _delimited(_options(), jelly.RdfStreamRow()), BadRequest),
        (lambda: _delimited(jelly.RdfStreamRow(triple=jelly.RdfTriple())), BadRequest),
        (lambda: _delimited(_options(), jelly.RdfStreamRow(name=jelly.RdfNameEntry(value="x" * 5_000))), BodyTooLarge),
        (_bomb, BodyTooLarge),
        (_deep, BadRequest),
    ],
    ids=[
        "length", "noise", "truncated", "huge frame", "huge table", "types", "nothing to repeat", "no such name",
        "out of the table", "empty row", "no options", "long entry", "bomb", "deep",
    ],
)  # fmt: skip
def test_hostile_frames_are_refused(make: Callable[[], bytes], error: type[InputError]) -> None:
    """The threat: a few bytes that become many, or that break the library."""
    with pytest.raises(error):
        read(make())
