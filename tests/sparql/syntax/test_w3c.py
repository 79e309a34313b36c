"""The W3C's syntax tests: what must parse does, what must not is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sparql.w3c_suites import MISSING, ROOT, Syntax, query_files, syntax_tests
from triplewire.model.errors import SparqlSyntax, Unsupported
from triplewire.sparql import parse_query

BASE = "http://example.org/base"
TESTS = syntax_tests()
OTHERS = sorted(set(query_files()) - {test.path for test in TESTS})

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason=MISSING)

EXAMPLES = {
    *(f"sparql10/syntax-sparql1/syntax-{name}.rq" for name in ("expr-05", "order-05", "order-06")),
    *(f"sparql10/syntax-sparql2/syntax-function-0{number}.rq" for number in (1, 2, 3, 4)),
    "sparql11/syntax-query/syntax-select-expr-04.rq",
}
"""They call functions that are examples: they parse to the end, and what is refused then is that nobody knows them."""

DRAFTS = {
    *(f"sparql11/property-path/pp{number}.rq" for number in ("04", "05", "13", "15")),
    *(f"sparql11/property-path/path-{number}.rq" for number in ("2-1", "2-3", "3-1", "3-2", "3-4")),
}
"""`:p{2}` was in drafts of SPARQL 1.1 and is not in it; no manifest names these files."""

BINDINGS = {
    *(f"sparql11/bindings/bindings0{number}.rq" for number in range(1, 9)),
    *(f"sparql11/syntax-query/syntax-bindings-0{number}.rq" for number in range(2, 6)),
}
"""`BINDINGS` became `VALUES` before SPARQL 1.1 was finished; no manifest names these files."""

SPARQL_10 = {"sparql10/basic/term-7.rq", "sparql10/syntax-sparql1/syntax-lit-08.rq"}
"""A decimal that ends with a dot is not in SPARQL 1.1: see `tests/conformance/overtaken.toml`."""

UNLISTED = {"sparql11/syntax-query/qname-escape-01.rq"}
"""`\\:` is no escape in SPARQL 1.1; the manifest describes this test and does not list it."""


def read(path: Path) -> str:
    return path.read_bytes().decode()


@pytest.mark.parametrize(
    "test",
    [each for each in TESTS if each.positive and each.name not in SPARQL_10 | UNLISTED],
    ids=lambda test: test.name,
)
def test_what_must_parse_does(test: Syntax) -> None:
    if test.name in EXAMPLES:
        with pytest.raises(Unsupported, match="function <http://example"):
            parse_query(read(test.path), BASE)
    else:
        parse_query(read(test.path), BASE)


@pytest.mark.parametrize("test", [test for test in TESTS if not test.positive], ids=lambda test: test.name)
def test_what_must_not_parse_is_refused_with_its_place(test: Syntax) -> None:
    with pytest.raises((SparqlSyntax, Unsupported)) as refused:
        parse_query(read(test.path), BASE)
    assert refused.value.place


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_queries_of_other_tests_parse(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    if name in DRAFTS | BINDINGS | SPARQL_10:
        found = r"\{" if name in DRAFTS else "BINDINGS" if name in BINDINGS else r"\."
        with pytest.raises(SparqlSyntax, match=f"found `{found}`"):
            parse_query(read(path), BASE)
    else:
        parse_query(read(path), BASE)
