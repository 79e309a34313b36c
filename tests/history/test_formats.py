"""Formats: what they write is read back by parsers that we did not write."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history import terms
from triplewire.history.formats.columns import BATCH_BYTES, GATHER_SECONDS, split_batches
from triplewire.history.formats.results import FEW_CELLS, FORMATS, ResultFormat, choose_format
from triplewire.model.errors import BadRequest, NotAcceptable
from triplewire.model.terms import is_literal, literal, parse_literal

BY_NAME = {each.name: each for each in FORMATS}
NAMES = ("a", "A", "long_name")
RESULTS = {"json": ox.QueryResultsFormat.JSON, "xml": ox.QueryResultsFormat.XML, "tsv": ox.QueryResultsFormat.TSV}
SYNTAXES = {
    "turtle": ox.RdfFormat.TURTLE,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "jsonld": ox.RdfFormat.JSON_LD,
    "rdfxml": ox.RdfFormat.RDF_XML,
}
XML_LACKS = {chr(code) for code in range(32) if chr(code) not in "\t\n\r"} | {"\ufffe", "\uffff"}


def written(form: str, name: str, batches: Iterator[pa.RecordBatch], names: tuple[str, ...] = NAMES) -> bytes:
    return b"".join(BY_NAME[name].write(form, names, batches))


def term_of(term: str | None, name: str) -> str | None:
    """The term as the format keeps it."""
    if term is None or not is_literal(term) or name != "xml":
        return term
    parts = parse_literal(term)
    text = "".join("\ufffd" if character in XML_LACKS else character for character in parts.lexical)
    return literal(text, parts.datatype, parts.language)


def text_of(term: object) -> str | None:
    """A term of the oracle in our canonical text."""
    if isinstance(term, ox.Literal):
        return literal(term.value, term.datatype.value, term.language)
    return None if term is None else str(term)


def solutions(body: bytes, name: str) -> list[tuple[str | None, ...]]:
    found = ox.parse_query_results(body, format=RESULTS[name])
    assert isinstance(found, ox.QuerySolutions)
    assert [variable.value for variable in found.variables] == list(NAMES)
    return [tuple(text_of(solution[each]) for each in NAMES) for solution in found]


@pytest.mark.parametrize("name", RESULTS)
@settings(max_examples=60, deadline=None)
@given(rows=terms.rows(3))
def test_solutions_are_read_back_as_they_were(name: str, rows: list[tuple[str | None, ...]]) -> None:
    body = written("select", name, terms.batches(NAMES, rows))
    assert solutions(body, name) == [tuple(term_of(term, name) for term in row) for row in rows]


ODD = (
    '<<( <urn:s> <urn:p> <<( _:b <urn:p> "x \\" y"@en )>> )>>',
    '"a"@ar--rtl',
    '<urn:"\\\x01<>',
    '"a"^^<urn:"\x01>',
    '"a"@"',
    "_:",
    "<>",
    '""',
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(*[st.none() | terms.terms | st.sampled_from(ODD)] * 3), min_size=1, max_size=8))
def test_many_solutions_are_written_as_few_are(rows: list[tuple[str | None, ...]]) -> None:
    """Few are written cell by cell, many column by column."""
    few = written("select", "json", terms.batches(NAMES, rows))
    (head, _, rest), times = few.partition(b"[\n"), 1 + FEW_CELLS // len(NAMES)
    body = rest.removesuffix(b"\n]}}\n")
    many = written("select", "json", terms.batches(NAMES, rows * times, size=8 * times))
    assert many == head + b"[\n" + b",\n".join([body] * times) + b"\n]}}\n"
    assert len(rows) * times * len(NAMES) > FEW_CELLS >= len(rows) * len(NAMES)


@pytest.mark.parametrize("times", [1, FEW_CELLS])
@settings(max_examples=20, deadline=None)
@given(rows=terms.rows(3))
def test_many_solutions_are_read_back_as_they_were(times: int, rows: list[tuple[str | None, ...]]) -> None:
    body = written("select", "json", terms.batches(NAMES, rows * times, size=8 * times))
    assert solutions(body, "json") == rows * times


@settings(max_examples=60, deadline=None)
@given(rows=terms.rows(3))
def test_csv_keeps_the_text_of_terms(rows: list[tuple[str | None, ...]]) -> None:
    body = written("select", "csv", terms.batches(NAMES, rows)).decode()
    head, *found = list(csv.reader(io.StringIO(body, newline=""), strict=True))
    assert head == list(NAMES)
    assert found == [[_plain(term) for term in row] for row in rows]


def _plain(term: str | None) -> str:
    if term is None:
        return ""
    return parse_literal(term).lexical if is_literal(term) else term.strip("<>")


def test_csv_tells_an_empty_text_from_none_and_ends_lines_as_it_must() -> None:
    assert written("select", "csv", terms.batches(("a", "b"), [('""', None)]), ("a", "b")) == b'a,b\r\n"",\r\n'


@pytest.mark.parametrize("name", RESULTS)
def test_triple_terms_and_directions_are_written(name: str) -> None:
    inside = '<<( _:b <urn:p> "x \\" y"@en )>>'
    rows = [(f"<<( <urn:s> <urn:p> {inside} )>>", None, '"a"@ar--rtl')]
    body = written("select", name, terms.batches(NAMES, rows))
    found = ox.parse_query_results(body, format=RESULTS[name])
    assert isinstance(found, ox.QuerySolutions)
    (solution,) = found
    assert [f"<<( {solution['a']} )>>", str(solution["long_name"])] == [rows[0][0], rows[0][2]]


@pytest.mark.parametrize("truth", [True, False])
def test_a_verdict_is_read_back(truth: bool) -> None:
    for name in ("json", "xml"):
        found = ox.parse_query_results(written("ask", name, answer(truth), ()), format=RESULTS[name])
        assert isinstance(found, ox.QueryBoolean)
        assert bool(found) is truth
    assert written("ask", "csv", answer(truth), ()) == str(truth).lower().encode() + b"\r\n"
    assert written("ask", "tsv", answer(truth), ()) == str(truth).lower().encode() + b"\n"


def answer(truth: bool) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_arrays([pa.array([truth])], ["answer"])


@pytest.mark.parametrize("name", ["json", "xml"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_solutions_without_variables_are_counted(name: str, count: int) -> None:
    body = written("select", name, terms.batches((), [()] * count), ())
    found = ox.parse_query_results(body, format=RESULTS[name])
    assert isinstance(found, ox.QuerySolutions)
    assert len(list(found)) == count


@pytest.mark.parametrize("name", RESULTS)
def test_columns_without_a_value_are_written(name: str) -> None:
    assert solutions(written("select", name, terms.batches(NAMES, [(None, None, None)])), name) == [(None,) * 3]
    assert solutions(written("select", name, iter(())), name) == []


GRAPHS = st.lists(st.tuples(terms.iris | terms.blanks, st.just("<http://example.org/p>"), terms.terms), max_size=8)


@pytest.mark.parametrize("name", SYNTAXES)
@settings(max_examples=60, deadline=None)
@given(triples=GRAPHS)
def test_graphs_are_read_back_as_they_were(name: str, triples: list[tuple[str, str, str]]) -> None:
    try:
        body = written("construct", name, terms.triples(triples))
    except NotAcceptable:
        assert name == "rdfxml"
        return
    assert _graph(body, SYNTAXES[name]) == _graph(_lines(triples), ox.RdfFormat.N_TRIPLES)


def _lines(triples: list[tuple[str, str, str]]) -> bytes:
    return "".join(f"{' '.join(triple)} .\n" for triple in triples).encode()


def _graph(body: bytes, syntax: ox.RdfFormat) -> ox.Dataset:
    found = ox.Dataset(ox.parse(body, format=syntax, lenient=True))
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return found


def test_json_ld_refuses_what_it_cannot_write_and_says_what_can() -> None:
    rows = [("<urn:s>", "<urn:p>", "<<( <urn:s> <urn:p> <urn:o> )>>")]
    with pytest.raises(NotAcceptable, match="text/turtle"):
        written("construct", "jsonld", terms.triples(rows))


@pytest.mark.parametrize("name", BY_NAME)
def test_the_first_rows_leave_before_the_last_are_known(name: str) -> None:
    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            if name in SYNTAXES:
                yield from terms.triples([("<urn:s>", "<urn:p>", "<urn:first>")])
            else:
                yield from terms.batches(NAMES, [("<urn:first>", None, None)])

    form = "construct" if name in SYNTAXES else "select"
    assert b"urn:first" in next(BY_NAME[name].write(form, NAMES, endless()))


def test_a_batch_of_large_terms_is_formatted_in_parts() -> None:
    large = literal("x" * (BATCH_BYTES // 2))
    chunks = list(BY_NAME["json"].write("select", ("a",), terms.batches(("a",), [(large,)] * 6, size=6)))
    assert len(chunks) > 2
    found = ox.parse_query_results(b"".join(chunks), format=ox.QueryResultsFormat.JSON)
    assert isinstance(found, ox.QuerySolutions)
    assert len(list(found)) == 6


@pytest.mark.parametrize("name", ["json", "xml"])
def test_an_address_that_is_none_breaks_no_document(name: str) -> None:
    body = written("select", name, terms.batches(("a",), [('<urn:"\\\x01<>',)]), ("a",))
    with pytest.raises((ValueError, SyntaxError), match=r"IRI|iri|character"):
        list(ox.parse_query_results(body, format=RESULTS[name]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "accept", "name"),
    [
        ("select", None, "json"),
        ("select", "", "json"),
        ("construct", None, "turtle"),
        ("describe", "*/*", "turtle"),
        ("select", "text/csv, application/sparql-results+json;q=0.5", "csv"),
        ("select", "text/csv;q=0.1, application/sparql-results+xml", "xml"),
        ("ask", "text/*", "csv"),
        ("construct", "application/*;q=0.5, text/turtle;q=0.1", "ntriples"),
        ("select", "*/*;q=0.1, application/sparql-results+json;q=0", "xml"),
        ("construct", "application/json", "jsonld"),
        ("select", "TEXT/CSV; header=present", "csv"),
    ],
)
def test_the_header_chooses(form: str, accept: str | None, name: str) -> None:
    assert choose_format(form, accept).name == name


@pytest.mark.parametrize("accept", ["text/html", "text/csv;q=0", "text/csv;q=nan", "text/csv;q=x", ",", "text/turtle"])
def test_what_cannot_be_given_names_what_can(accept: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        choose_format("select", accept)
    assert "text/csv" in refused.value.known


def test_a_format_can_be_named() -> None:
    assert choose_format("select", "text/html", "TSV").name == "tsv"
    assert choose_format("construct", None, "application/ld+json").name == "jsonld"
    with pytest.raises(NotAcceptable):
        choose_format("construct", None, "csv")
    with pytest.raises(BadRequest, match="jsonld"):
        choose_format("construct", None, "pdf")


def test_text_says_its_charset() -> None:
    found: dict[str, ResultFormat] = BY_NAME
    assert found["csv"].content_type == "text/csv; charset=utf-8"
    assert found["json"].content_type == "application/sparql-results+json"


class Ticking:
    """A clock that moves with each batch that is taken, and between those stands still."""

    def __init__(self, step: float) -> None:
        self.now = 0.0
        self._step = step

    def taken(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            self.now += self._step
            yield batch


@pytest.mark.parametrize(("tenths", "sizes"), [(0, [8]), (4, [3, 3, 2]), (11, [1] * 8)])
def test_what_comes_in_one_moment_goes_out_together(tenths: int, sizes: list[int]) -> None:
    clock = Ticking(GATHER_SECONDS * tenths / 10)
    batches = [pa.record_batch({"v0": [f"<urn:{number}>"]}) for number in range(8)]
    found = list(split_batches(clock.taken(batches), lambda: clock.now))
    assert [each.num_rows for each in found] == sizes
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(batches))


def test_batches_without_rows_are_no_pieces() -> None:
    empty = pa.record_batch({"v0": pa.array([], pa.string())})
    assert list(split_batches([empty, empty])) == []
