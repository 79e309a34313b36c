"""The functions that a query may call, with the numbers of arguments that they take."""

from __future__ import annotations

import sys

from triplewire.model.terms import XSD

_ONE = (
    "STR LANG DATATYPE IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI YEAR MONTH DAY HOURS MINUTES "
    "SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC"
)
_TWO = "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"

ARITIES: dict[str, range] = {
    **dict.fromkeys(["RAND", "NOW", "UUID", "STRUUID"], range(1)),
    **dict.fromkeys(_ONE.split(), range(1, 2)),
    **dict.fromkeys(_TWO.split(), range(2, 3)),
    "BNODE": range(2),
    "BOUND": range(1, 2),
    "COALESCE": range(sys.maxsize),
    "CONCAT": range(sys.maxsize),
    "IF": range(3, 4),
    "REGEX": range(2, 4),
    "REPLACE": range(3, 5),
    "SUBSTR": range(2, 4),
}

AGGREGATES = frozenset(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])

SAME = {"URI": "iri", "ISURI": "isiri"}
"""Names that mean what another does."""

_CLAUSES = (
    "SELECT ASK CONSTRUCT DESCRIBE DISTINCT REDUCED WHERE FROM NAMED GRAPH OPTIONAL UNION MINUS SERVICE SILENT BIND AS "
    "VALUES UNDEF FILTER NOT EXISTS IN GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET TRUE FALSE A SEPARATOR"
)

RESERVED = frozenset(_CLAUSES.split())
"""Words that a parenthesis does not make a function."""

_TYPES = "boolean integer decimal float double string dateTime date"

CASTS = frozenset(f"<{XSD}{name}>" for name in _TYPES.split())
"""The types whose IRIs may be called with one value, to make it one of the type."""

KNOWN = ", ".join(sorted({*ARITIES, *AGGREGATES}))
KNOWN_CASTS = ", ".join(f"xsd:{name}" for name in _TYPES.split())
