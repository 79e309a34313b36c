"""Aggregates and orders over groups of terms, against pyoxigraph.

GROUP_CONCAT joins what STR gives, where pyoxigraph takes strings only; so groups of other terms are left out there.
"""

from __future__ import annotations

from itertools import pairwise

import duckdb
import pyoxigraph as ox
import pytest

from tests.sparql.expression_tables import expected, normal, relation
from tests.sparql.test_functions import TERMS, typed
from tests.sparql.worlds import PREFIXES
from triplewire.sparql import Family, to_sql
from triplewire.sparql.compiler.aggregates import aggregate
from triplewire.sparql.compiler.comparisons import total_order_keys
from triplewire.sparql.compiler.terms import StoredTerm
from triplewire.sparql.compiler.values import Value
from triplewire.sparql.dialects.duckdb import register_functions
from triplewire.sparql.sql import call, column, text

OPS = ("count", "sum", "avg", "min", "max")
GROUPS = (
    "",
    "1 2",
    "1 2 2",
    "1 2.5",
    "0.1 0.2 0.3",
    "-1 -1 -3.5",
    "1 2.5 3e0",
    "'1.5'^^xsd:float 2",
    "'1.5'^^xsd:float 2e0",
    "1 'NaN'^^xsd:double 2",
    "'INF'^^xsd:double 1",
    "1 'a'",
    "'b' 1 <http://a>",
    "'a'@en 'b'",
    "'B' 'a' 'É' '🤦'",
    "'x'^^xsd:integer 2",
    "<http://b> <http://a>",
    "true false",
    "'2020-01-02T03:04:05+02:00'^^xsd:dateTime '2020-01-02T02:04:05Z'^^xsd:dateTime",
    "UNDEF 1",
    "UNDEF",
    " ".join(["9000000000000000000"] * 30),
)


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    register_functions(connection)
    return connection


def terms_of(group: str) -> list[str | None]:
    found = ox.Store().query(f"{PREFIXES}SELECT ?x {{ VALUES ?x {{ {group} }} }}")
    assert isinstance(found, ox.QuerySolutions)
    return [None if row["x"] is None else str(row["x"]) for row in found]


def answered(connection: duckdb.DuckDBPyConnection, terms: list[str | None], value: Value) -> str | None:
    rows = relation([(term, None) for term in terms] or [(None, None)])
    sql = f"SELECT {to_sql(value.text(), 'duckdb')} FROM ({rows}) AS t {'' if terms else 'WHERE false'}"
    [(found,)] = connection.execute(sql).fetchall()
    return normal([found])[0]


def oracle(call: str, group: str) -> str | None:
    found = ox.Store().query(f"{PREFIXES}SELECT ({call} AS ?r) {{ VALUES ?x {{ {group} }} }}")
    assert isinstance(found, ox.QuerySolutions)
    [row] = found
    return None if row["r"] is None else str(row["r"])


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("group", GROUPS)
def test_as_pyoxigraph(connection: duckdb.DuckDBPyConnection, op: str, group: str) -> None:
    found = answered(connection, terms_of(group), aggregate(op, StoredTerm("t", "a", certain=False)))
    assert found == oracle(f"{op.upper()}(?x)", group)


@pytest.mark.parametrize("op", ["sum", "avg"])
@pytest.mark.parametrize(
    ("family", "group"),
    [(Family.DOUBLE, "1e0 2.5e0"), (Family.DOUBLE, ""), (Family.EXACT, "1 2.5"), (Family.FLOAT, "'1.5'^^xsd:float")],
)
def test_where_the_family_is_known(connection: duckdb.DuckDBPyConnection, op: str, family: Family, group: str) -> None:
    value = aggregate(op, StoredTerm("t", "a", frozenset({family})))
    assert answered(connection, terms_of(group), value) == oracle(f"{op.upper()}(?x)", group)


def test_all_rows_are_counted_without_an_argument(connection: duckdb.DuckDBPyConnection) -> None:
    assert answered(connection, ['"a"', None], aggregate("count", None)) == typed("2", "integer")


@pytest.mark.parametrize(
    ("terms", "wanted"),
    [
        ([], '""'),
        (['"a"', '"b"@en'], '"a, b"'),
        ([typed("1", "integer"), "<http://a>"], '"1, http://a"'),
        (['"a\\"b"'], '"a\\"b"'),
        (['"a"', None], None),
        (["_:b"], None),
    ],
)
def test_group_concat(connection: duckdb.DuckDBPyConnection, terms: list[str | None], wanted: str | None) -> None:
    value = aggregate("group_concat", StoredTerm("t", "a", certain=False), separator=", ")
    assert answered(connection, terms, value) == wanted


def test_a_sample_is_one_of_the_terms_and_no_error(connection: duckdb.DuckDBPyConnection) -> None:
    found = answered(connection, [None, '"a"', None], aggregate("sample", StoredTerm("t", "a", certain=False)))
    assert found == '"a"'
    assert answered(connection, [], aggregate("sample", StoredTerm("t", "a"))) is None


@pytest.mark.parametrize(
    ("op", "wanted"),
    [("count", "1"), ("sum", "5"), ("avg", "5"), ("min", "5"), ("max", "5")],
)
def test_only_rows_that_count(connection: duckdb.DuckDBPyConnection, op: str, wanted: str) -> None:
    among = call("TW_STARTS", column("t", "a"), text('"5"'))
    value = aggregate(op, StoredTerm("t", "a", certain=False), among=among)
    terms = [typed("5", "integer"), typed("7", "integer"), '"x"', None]
    found = answered(connection, terms, value)
    assert found == typed(wanted, "decimal" if op == "avg" else "integer")


def test_order_is_total_and_as_pyoxigraph_has_it_inside_of_classes(connection: duckdb.DuckDBPyConnection) -> None:
    terms = list(dict.fromkeys([*TERMS, "_:a", "_:b"]))
    keys = ", ".join(
        f"{to_sql(key, 'duckdb')} NULLS FIRST" for key in total_order_keys(StoredTerm("t", "a", certain=False))
    )
    rows = connection.execute(f"SELECT a FROM ({relation([(term, None) for term in terms])}) AS t ORDER BY {keys}")
    found = [row[0] for row in rows.fetchall()]
    assert found[:3] == [None, "_:a", "_:b"]
    assert [str(each)[0] for each in found[3:]] == ["<"] * 2 + ['"'] * (len(found) - 5)
    pairs = list(pairwise(found[5:]))
    assert typed("true", "boolean") not in expected(pairs, "?a > ?b")


@pytest.mark.parametrize("family", [Family.STRING, Family.DOUBLE, Family.DATETIME, Family.IRI])
def test_known_families_have_short_keys(family: Family) -> None:
    assert len(total_order_keys(StoredTerm("t", "a", frozenset({family})))) <= 2
