"""Languages: queries, filters and policies. Each target takes bytes or raises an InputError."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from triplewire.matching.filters import document_query
from triplewire.security.policy import parse_policy
from triplewire.sparql import compile_query, parse_query

Target = Callable[[bytes], object]


def _sparql(data: bytes) -> None:
    """From text to SQL."""
    query = parse_query(data.decode("utf-8", "replace"))
    compile_query(query, "duckdb")


def _filter(data: bytes) -> None:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return
    if isinstance(value, dict):
        document_query(value)


def _policy(data: bytes) -> None:
    parse_policy(data.decode("utf-8", "replace"))


TARGETS: dict[str, Target] = {"sparql": _sparql, "filters": _filter, "policies": _policy}
"""By their names."""

SEEDS: dict[str, tuple[bytes, ...]] = {
    "sparql": (
        b"PREFIX : <x:> SELECT DISTINCT ?s (COUNT(?o) AS ?n) { ?s :p/^:q* ?o ; a :T OPTIONAL { ?o :r 'x'@en "
        b'FILTER(?o > -1.5e3 && REGEX(STR(?s), "a")) } } GROUP BY ?s HAVING (SUM(?o) > 1) ORDER BY DESC(?n) LIMIT 10',
        b"ASK { { ?s ?p (1 2) } UNION { ?s ?p [] } MINUS { ?s !(a|^a) 1 } BIND(IF(BOUND(?s), 1, ?o) AS ?z) "
        b"VALUES (?a ?b) { (UNDEF 'x'^^<x:t>) } FILTER NOT EXISTS { GRAPH ?g { ?s ?p ?o } } }",
    ),
    "filters": (b'{"filters":[[{"attribute":"x:p","op":">","value":1}]]}',),
    "policies": (
        b'[default]\nsee = "deny"\npublish = "allow"\n\n[[see]]\nname="n"\nwho = ["role:a"]\nallow.streams = ["c-*"]\n',
    ),
}
"""Where each begins."""
