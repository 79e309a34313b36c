"""Evaluation of paths over triples in memory, against pyoxigraph."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.sparql import parse_query
from triplewire.sparql.algebra import Reach, Select
from triplewire.sparql.paths import evaluate_path

nodes = st.sampled_from([f"<urn:{name}>" for name in "abcd"])
triples = st.frozensets(st.tuples(nodes, st.sampled_from(["<urn:p>", "<urn:q>"]), nodes), min_size=1, max_size=6)


@pytest.mark.parametrize("path", ["p+", "p*", "p?", "(p/^q)+", "(p|q)*", "(!p)+", "(!(p|^q))*", "(p/q?)+"])
@settings(max_examples=25, deadline=None)
@given(known=triples)
def test_a_walk_is_a_path(path: str, known: frozenset[tuple[str, str, str]]) -> None:
    spelled = path.replace("p", "<urn:p>").replace("q", "<urn:q>")
    text = f"SELECT DISTINCT ?a ?b {{ ?a {spelled} ?b }}"
    query = parse_query(text)
    assert isinstance(query.where, Select)
    assert isinstance(query.where.inner, Reach)
    store = ox.Store()
    store.load("".join(f"{' '.join(each)} .\n" for each in known), format=ox.RdfFormat.N_TRIPLES)
    found = store.query(text)
    assert isinstance(found, ox.QuerySolutions)
    assert evaluate_path(query.where.inner.path, known) == {(str(row["a"]), str(row["b"])) for row in found}
