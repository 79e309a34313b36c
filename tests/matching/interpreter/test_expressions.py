"""Every function on all pairs of terms, of plain forms and of odd ones: undecided, or what the evaluator says."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hypothesis import given

from tests.differential.expressions import anything
from tests.differential.pairs import examples
from tests.matching.interpreter.oracles import EX, PREFIXES, XSD, batch, evaluated, event, singly
from triplewire.model.errors import Unsupported


def typed(name: str, *lexicals: str) -> list[str]:
    return [f'"{each}"^^<{XSD}{name}>' for each in lexicals]


PLAIN = [
    *typed("integer", "7", "007", "-7", "0"),
    *typed("decimal", "7.0", "0.30", "-2.25", "199.999998"),
    *typed("double", "7", "1.5", "2.5e3"),
    *typed("int", "12"),
    *typed("boolean", "true", "0"),
    *typed("dateTime", "2026-11-16T08:00:00Z", "2026-11-16T09:00:00.5+01:00"),
    '"a"',
    '"7"',
    '""',
    '"Ab c"',
    '"a"@en',
    f"<{EX}a>",
]
ODD = [
    *typed("integer", "+7", "-0", "123456789012345678901234567890", "x", ""),
    *typed("decimal", ".5", "5.", "0.1234567890123456789"),
    *typed("double", "-0.0", "1e400", "INF", "NaN"),
    *typed("float", "7", "0.1"),
    *typed("byte", "300"),
    *typed("boolean", "TRUE"),
    *typed("dateTime", "2026-11-16T08:00:00", "2026-11-16T24:00:00Z", "2026-02-30T00:00:00Z", "soon"),
    *typed("date", "2026-11-16", "2026-11-16Z"),
    '"a\\"b\\n"',
    '"\\u0001"',
    '"é"',
    '"ß😀"',
    '"a"@EN',
    '"ab"@en-gb',
    f'"a"^^<{EX}type>',
]
TERMS = [*PLAIN, *ODD]

OF_ONE = (
    "STR(?x)",
    "LANG(?x)",
    "DATATYPE(?x)",
    "STRLEN(?x)",
    "STRLEN(STR(?x))",
    "UCASE(?x)",
    "LCASE(STR(?x))",
    "SUBSTR(STR(?x), 2)",
    "SUBSTR(?x, 0, 2)",
    "isIRI(?x)",
    "isBLANK(?x)",
    "isLITERAL(?x)",
    "isNUMERIC(?x)",
    "(!?x)",
    "IF(?x, 1, 2)",
    "(-?x)",
    "(+?x)",
    "ABS(?x)",
    "CEIL(?x)",
    "FLOOR(?x)",
    "ROUND(?x)",
    "COALESCE(?x + 1, ?x)",
    "BOUND(?x)",
    "(?never = ?x)",
    "(?x IN ())",
    'LANGMATCHES(LANG(?x), "en")',
    'LANGMATCHES(LANG(?x), "*")',
    'REGEX(STR(?x), "^[a-z]?.*7$")',
    'REGEX(?x, "A", "i")',
    "(?x * 2.5)",
    "YEAR(?x)",
    "DAY(?x)",
    "HOURS(?x)",
    "SECONDS(?x)",
    "xsd:string(?x)",
    "xsd:boolean(?x)",
    "xsd:integer(?x)",
    "xsd:decimal(?x)",
    "((?x / 4) > 1.7)",
)
OF_TWO = (
    "(?x = ?y)",
    "(?x != ?y)",
    "(?x < ?y)",
    "(?x >= ?y)",
    "sameTerm(?x, ?y)",
    "(?x + ?y)",
    "(?x - ?y)",
    "(?x * ?y)",
    "((?x / ?y) > 3)",
    "(?x + ?y > ?x * ?y)",
    "(?x && ?y)",
    "(?x || ?y)",
    "(?x IN (7, ?y))",
    "(?x NOT IN (?y, 7))",
    "CONCAT(?x, ?y)",
    "CONTAINS(?x, ?y)",
    "STRSTARTS(STR(?x), STR(?y))",
    "STRENDS(?x, ?y)",
    "STRBEFORE(?x, ?y)",
    "STRAFTER(?x, ?y)",
    "IF(?x < ?y, ?x, ?y)",
)
OF_GROUPS = (
    "COUNT(?v)",
    "COUNT(DISTINCT ?v)",
    "SUM(?v)",
    "AVG(?v)",
    "MIN(?v)",
    "MAX(?v)",
    "SAMPLE(?v)",
    "(AVG(?v) * 2)",
)
OPEN = (
    "SELECT ?x (xsd:double(?x) AS ?r) (xsd:decimal(STR(?y)) AS ?t) (xsd:integer(STR(?y)) AS ?u) { ?s :x ?x ; :y ?y }",
    "SELECT ?x ?y ((?x / ?y) AS ?r) { ?s :x ?x ; :y ?y }",
    'SELECT (GROUP_CONCAT(?v; SEPARATOR=", ") AS ?r) { ?s :x|:y ?v }',
    "SELECT (GROUP_CONCAT(DISTINCT STR(?v)) AS ?r) { ?s :x|:y ?v }",
)
"""Digits that are nowhere said, and orders."""
ALONE = batch([event(("s", "x", term)) for term in TERMS])
PAIRS = batch([event(("s", "x", one), ("s", "y", other)) for one, other in product(TERMS, TERMS)])
GROUPS = batch([event(*{("s", "v", one), ("s", "v", other)}) for one, other in product(TERMS, TERMS)])


@pytest.mark.parametrize("expression", OF_ONE)
def test_functions_of_one_term(expression: str) -> None:
    asked = f"{PREFIXES}SELECT ?x ({expression} AS ?r) {{ ?s :x ?x }}"
    found, expected = singly(asked, ALONE), evaluated(asked, ALONE)
    assert [(a, b) for a, b in zip(found, expected, strict=True) if a not in (None, b)] == []
    assert None not in found[: len(PLAIN)]


@pytest.mark.parametrize("expression", OF_TWO)
def test_functions_of_two_terms(expression: str) -> None:
    asked = f"{PREFIXES}SELECT ?x ?y ({expression} AS ?r) {{ ?s :x ?x ; :y ?y }}"
    found, expected = singly(asked, PAIRS), evaluated(asked, PAIRS)
    assert [(a, b) for a, b in zip(found, expected, strict=True) if a not in (None, b)] == []
    assert found.count(None) < len(found) / 2


@pytest.mark.parametrize("expression", OF_GROUPS)
def test_set_functions(expression: str) -> None:
    asked = f"{PREFIXES}SELECT ({expression} AS ?r) {{ ?s :v ?v }}"
    found, expected = singly(asked, GROUPS), evaluated(asked, GROUPS)
    assert [(a, b) for a, b in zip(found, expected, strict=True) if a not in (None, b)] == []
    assert found.count(None) < len(found) * 0.8


@pytest.mark.parametrize("asked", OPEN)
def test_what_is_mostly_undecided_is_right_where_it_is_not(asked: str) -> None:
    found, expected = singly(PREFIXES + asked, PAIRS), evaluated(PREFIXES + asked, PAIRS)
    assert [(a, b) for a, b in zip(found, expected, strict=True) if a not in (None, b)] == []
    assert any(each is not None for each in found)


def test_generated_expressions() -> None:
    random, decided = Random(1), list[bool]()
    drawn = [[("s", name, random.choice(TERMS)) for name in "xyz"] for _ in range(100)]
    events = batch([event(*lines) for lines in drawn])

    @examples(40)
    @given(anything)
    def holds(expression: str) -> None:
        asked = f"{PREFIXES}SELECT * {{ ?s :x ?x ; :y ?y ; :z ?z BIND({expression} AS ?r) }}"
        try:
            found = singly(asked, events)
        except Unsupported:
            return
        decided.extend(each is not None for each in found)
        if any(each is not None for each in found):
            expected = evaluated(asked, events)
            assert [(a, b) for a, b in zip(found, expected, strict=True) if a not in (None, b)] == [], expression

    holds()
    assert decided.count(True) > len(decided) / 2
