"""Terms for tests of their order: of every class, with what is easily got wrong."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tests.storage.lake.test_delta import entries
from triplewire.model import Event
from triplewire.model.terms import XSD
from triplewire.storage.lake.keys import QuadPoint, quad_point

Quad = tuple[str, str, str, str]


def typed(lexical: str, name: str) -> str:
    return f'"{lexical}"^^<{XSD}{name}>'


NUMBERS = (
    *(typed(each, "integer") for each in ("-12", "-9", "-1", "0", "-0", "1", "007", "9", "25", "100", "1000")),
    *(typed(each, "double") for each in ("1e3", "1E3", "-INF", "INF", "NaN", "-0.0", "-1e-300", "4.9e-324", "1e999")),
    *(typed(each, "decimal") for each in ("-0.5", "1.50", "1.5", "123456789012345678901234567890.1", ".5")),
    typed("123456789012345678901234567890.2", "decimal"),
    typed("9007199254740993", "long"),
    typed("0.1", "float"),
)
TIMES = (
    typed("2026-11-16T12:00:00Z", "dateTime"),
    typed("2026-11-16T12:00:00+02:00", "dateTime"),
    typed("2026-11-16T11:59:59.999999-00:30", "dateTime"),
    typed("2026-11-16", "date"),
    typed("2026-11-16T00:00:00", "dateTime"),
    typed("1969-12-31T23:59:59Z", "dateTime"),
    typed("-0044-03-15T00:00:00Z", "dateTime"),
    typed("12026-01-01", "date"),
)
LITERALS = (
    '""',
    '"abc"',
    '"abc"@en',
    '"abc"@fr',
    typed("abc", "integer"),
    typed("2026-13-45", "date"),
    typed("1", "gYear"),
    '"it\'s \\"quoted\\" \\\\ and \\n"',
    '"\ue000"',
    '"𝄞"',
    '"\\uFFFF"',
    '"e\u0301"',
)
IRIS = ("<urn:a>", "<urn:b>", "<http://a.org/x#title>", "<http://b.org/y/title>", "<http://a.org/>", "<urn:\uffee>")
TRIPLES = ("<<( <urn:a> <urn:b> <urn:c> )>>",)
OBJECTS = (*NUMBERS, *TIMES, *LITERALS, *IRIS, *TRIPLES)


def rows_of(quads: Sequence[Quad]) -> pa.Table:
    """The quads as log entries, an event for each, in their order."""
    return entries(*(Event(graph[1:-1], "\t".join(rest)) for graph, *rest in quads))


def place(quad: Quad) -> QuadPoint:
    return quad_point(*quad)
