"""Threat: a query that is short to write and has no end: joins of everything with everything, paths over all that
there
is, expressions that a regular one cannot decide, lists and depths without measure; or one that breaks out of its
language into SQL. Whoever may ask could stop all others from being answered. What stops it: size and depth are
limited
before it is compiled, constants are never SQL, and it runs in a process of its own, with limits of time, memory,
rows
and bytes; one that does not obey is killed, and the next query is answered.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import aiohttp

from tests.history.test_worker import queries
from tests.http.harness import house

DOUBLED = [f"BIND(CONCAT(?x{n}, ?x{n}, ?x{n}, ?x{n}) AS ?x{n + 1})" for n in range(16)]
HOSTILE = {
    "nothing": " ",
    "a NUL": "\x00",
    "half a query": "SELECT",
    "queries in queries": "SELECT * {" * 5_000,
    "a text without an end": "SELECT * { ?s ?p '" + "\\" * 10_001,
    "brackets": "SELECT * { ?s ?p ?o FILTER(" + "(" * 20_000,
    "negations": "SELECT * { ?s ?p ?o FILTER(" + "!" * 20_000 + "true) }",
    "a sum": "SELECT * { ?s ?p ?o FILTER(" + "1+" * 20_000 + "1) }",
    "values": "SELECT * { VALUES ?x { " + "1 " * 100_000 + "} }",
    "a list": "SELECT * { ?s ?p ?o FILTER(?o IN (" + "1, " * 100_000 + "1)) }",
    "a list within the limit": "SELECT * { ?s ?p ?o FILTER(?o IN (" + ", ".join(map(str, range(9_000))) + ")) }",
    "steps of a path": "SELECT * { ?s " + "/".join(["<urn:p>"] * 10_000) + " ?o }",
    "a path over everything": "SELECT (COUNT(*) AS ?n) { ?a (!<x:a>|!^<x:a>)* ?b . ?b (!<x:a>|!^<x:a>)* ?c }",
    "paths in paths": "SELECT * { ?s " + "(" * 50 + "<urn:p>" + ")*" * 50 + " ?o }",
    "a comment": "SELECT * { ?s ?p ?o } #" + "x" * 900_000,
    "an update": "CLEAR ALL",
    "SQL in a text that ends": "SELECT * { ?s ?p ?o '); DROP TABLE quads; --' }",
    "SQL in a text": 'SELECT * { ?s ?p "\'); DROP VIEW quads; --" }',
    "SQL in an IRI": "SELECT * { ?s <x:');DROP/**/VIEW/**/quads;--> ?o }",
    "an expression without an end": "SELECT * { ?s ?p ?o . FILTER(REGEX(STR(?o), '" + "(a*)*" * 50 + "b')) }",
    "an expression of the data": "SELECT * { ?s ?p ?o . ?a ?b ?c FILTER(REGEX(STR(?o), CONCAT('(', STR(?c), '+)+'))) }",
    "a text that doubles": f"SELECT (STRLEN(?x16) AS ?n) {{ BIND('aaaaaaaaaaaaaaaa' AS ?x0) {' '.join(DOUBLED)} }}",
    "everything with everything, counted": (
        "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n1 ?o . ?q ?r ?s . ?t ?u ?v }"
    ),
    "everything with everything": (
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n1 ?o . ?q ?r ?s . ?t ?u ?v . ?w ?x ?y }"
    ),
    "everything in one group": (
        "SELECT (GROUP_CONCAT(CONCAT(STR(?a), STR(?d), STR(?g))) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }"
    ),
}


async def test_hostile_queries_end_within_their_limits_and_the_next_is_answered(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(250),
        queries(tmp_path, events=100, query_memory="200MB", query_rows=10_000) as asked,
        house(change=lambda parts: replace(parts, answers=asked)) as home,
    ):
        for name, text in HOSTILE.items():
            form = {"query": text, "timeout": "1"}
            async with home.session.post(home.url + "/sparql", data=form) as response:
                assert response.status in (200, 400, 413, 422, 503), (name, await response.text())
                # An answer that ran into a limit after it had begun is cut off, so that nobody takes it for whole.
                with suppress(aiohttp.ClientPayloadError):
                    await response.content.read()
            ask = {"query": "ASK { ?s ?p ?o }"}
            async with home.session.post(home.url + "/sparql", data=ask) as response:
                assert (await response.json(content_type=None))["boolean"] is True, name
