"""Arbitrary terms, in canonical text, and batches of them as engines give them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from hypothesis import strategies as st

from triplewire.model.terms import XSD, literal

Row = Sequence[str | None]

_ADDRESS = st.text(st.characters(categories=["Ll", "Lo", "Nd"], include_characters="&'?/#-", max_codepoint=0x2FFF))
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\r\n",
        "\t",
        "a,b",
        '"',
        "\\",
        "\\n",
        "<&>",
        "]]>",
        "\x00",
        "\x1f",
        "\x7f",
        "\ufffe",
        "é\U0001f600",
    ]
)

iris = _ADDRESS.filter(lambda path: path.count("#") < 2).map(lambda path: f"<http://example.org/{path}>")
blanks = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,5}", fullmatch=True).map(lambda label: f"_:{label}")
plains = TEXTS.map(literal)
typeds = st.builds(lambda text, kind: literal(text, XSD + kind), TEXTS, st.sampled_from(["integer", "date", "a&b'"]))
tags = st.sampled_from(["en", "de-at", "zh-hant-tw"])
tagged = st.builds(lambda text, tag: literal(text, language=tag), TEXTS, tags)
terms = iris | blanks | plains | typeds | tagged


def rows(width: int) -> st.SearchStrategy[list[tuple[str | None, ...]]]:
    return st.lists(st.tuples(*[st.none() | terms] * width), max_size=8)


def batches(names: Sequence[str], found: Sequence[Row], size: int = 3) -> Iterator[pa.RecordBatch]:
    """The rows as an engine would give them, a few at a time."""
    for start in range(0, len(found), size):
        part = found[start : start + size]
        columns = [pa.array([row[index] for row in part], pa.string()) for index in range(len(names))]
        if names:
            yield pa.RecordBatch.from_arrays(columns, [f"v{index}" for index in range(len(names))])
        else:
            yield pa.RecordBatch.from_arrays([pa.array([1] * len(part))], ["unit"])


def triples(found: Sequence[Row], size: int = 3) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(found), size):
        part = found[start : start + size]
        columns = [pa.array([row[index] for row in part], pa.string()) for index in range(3)]
        yield pa.RecordBatch.from_arrays(columns, ["subject", "predicate", "object"])
