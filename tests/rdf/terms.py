"""Strategies for RDF terms and datasets, odd ones first: what a parser or a splitter could trip over."""

from __future__ import annotations

import pyoxigraph as ox
from hypothesis import strategies as st

_TRAPS = st.sampled_from(
    [
        " <http://e/x> .",
        "_:b",
        "> <",
        '> "',
        "\t",
        "\n",
        "\r",
        "\\",
        '"',
        "\x00",
        "\x7f",
        "\x85",
        "\u2028",
        " )>> ",
        "<<( ",
    ]
)
_TEXT = st.lists(_TRAPS | st.text(max_size=3), max_size=5).map("".join)

iris = st.builds(
    lambda head, tail: ox.NamedNode(head + tail),
    st.sampled_from(["http://e/", "http://e/é#", "urn:x:", "http://e/%20?a=b&c='d'_:", "http://[::1]/~(.)*,;"]),
    st.text(alphabet="abz019.-_é\u2028\U0001f600", min_size=1, max_size=4),
)
literals = (
    st.builds(ox.Literal, _TEXT)
    | st.builds(lambda text, language: ox.Literal(text, language=language), _TEXT, st.sampled_from(["en", "de-at"]))
    | st.builds(lambda text, datatype: ox.Literal(text, datatype=datatype), _TEXT, iris)
    | st.integers().map(ox.Literal)
    | st.floats(allow_nan=False).map(ox.Literal)
)
blanks = st.sampled_from(["a", "b", "a.b", "é", "0"]).map(ox.BlankNode)

_triples = st.builds(ox.Triple, iris | blanks, iris, iris | literals | blanks)
terms = iris | literals | blanks | _triples

graphs = st.sampled_from([ox.NamedNode("http://e/g"), ox.NamedNode("http://e/h#é"), ox.DefaultGraph()])

quads = st.builds(ox.Quad, iris | blanks, iris, terms, graphs)
bodies = st.lists(quads, min_size=1, max_size=12)
"""Quads of a body in any order: graphs interleave and quads repeat."""

plain_bodies = st.lists(st.builds(ox.Quad, iris, iris, iris | literals, graphs), min_size=1, max_size=12)
"""The same without blank nodes and triple terms, which come back exactly."""
