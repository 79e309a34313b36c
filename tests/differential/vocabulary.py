"""The vocabulary: few terms, so that patterns meet data often, of every family that operators tell apart.

Literals are in the lexical forms that pyoxigraph's store keeps; it rewrites others.
"""

from __future__ import annotations

import re

from triplewire.model.terms import XSD

EX = "http://example.org/"
PREFIXES = f"PREFIX xsd: <{XSD}>\nPREFIX : <{EX}>\n"

RESOURCES = tuple(f"<{EX}{name}>" for name in "abc")
LINKS = tuple(f"<{EX}{name}>" for name in "pq")
"""From resource to resource, mostly: paths run along them."""
VALUE = f"<{EX}v>"
GRAPHS = tuple(f"<{EX}e{number}>" for number in range(3))
UNKNOWN = f"<{EX}unknown>"

_LONG = re.compile(rf"<(?:({XSD})|{EX})(\w+)>")


def short(query: str) -> str:
    """The query with prefixes, for people."""
    return PREFIXES + _LONG.sub(lambda found: f"{'xsd:' if found[1] else ':'}{found[2]}", query)


def _typed(name: str, *lexicals: str) -> tuple[str, ...]:
    return tuple(f'"{lexical}"^^<{XSD}{name}>' for lexical in lexicals)


INTEGERS = _typed("integer", "0", "1", "2", "-7", "12")
DECIMALS = _typed("decimal", "1", "0.5", "-2.25")
FLOATS = (*_typed("double", "1", "0.5", "-3.5", "INF"), *_typed("float", "2", "0.25"))
"""Without NaN: to compare with it is an error to pyoxigraph, and false to XPath."""

BOOLEANS = _typed("boolean", "true", "false")
TIMES = _typed(
    "dateTime",
    "2020-01-01T00:00:00Z",
    "2020-01-01T01:30:00.5Z",
    "2020-02-29T23:59:59+01:00",
    "2019-12-31T00:00:00-05:00",
)
DATES = _typed("date", "2020-01-01", "2020-01-02Z")
STRINGS = ('""', '"a"', '"ab"', '"Ba b"', '"1"', '"a\\"b\\\\"', '"é\\n"', '"😀x"')
TAGGED = ('"a"@en', '"ab"@en', '"ab"@en-gb', '"b"@fr')
STRANGE = (f'"a"^^<{EX}type>', f'"b"^^<{EX}type>', f'"x"^^<{XSD}integer>')

NUMBERS = (*INTEGERS, *DECIMALS, *FLOATS)
COMMON = (*INTEGERS[1:3], DECIMALS[0], STRINGS[1], TAGGED[0], TIMES[0])
"""What data has more often than the rest."""
LITERALS = (*NUMBERS, *BOOLEANS, *TIMES, *DATES, *STRINGS, *TAGGED, *STRANGE)
