"""`bench sparql`: ten queries over history, beside pyoxigraph on disk with the same data in the same run."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, floor, log10
from pathlib import Path
from statistics import median
from string import Template
from typing import Any

import orjson
import pyoxigraph as ox
import uvloop
from rich.console import RenderableType
from rich.text import Text

from bench.city import BASE, PART_OF, PROPERTIES, START, STEP_SECONDS, City, place_of
from bench.harness import SOSA, Machine, Report, Say, check_count, make_directory
from bench.plots import BAR_STEP, BLUE, GREY, ORANGE, SILVER, Bar, draw_bars, draw_line, draw_sheet, draw_text
from bench.processes import last_position, publish_bodies, start_broker
from bench.tables import make_table
from triplewire.client import AsyncClient
from triplewire.model import parse_position
from triplewire.model.terms import RDF_TYPE, XSD, iri
from triplewire.sparql import compile_query, parse_query
from triplewire.sparql.algebra import Family
from triplewire.sparql.statistics import PredicateKind, Statistics, TripleCounts

BODY_EVENTS = 1_000
PUBLISHERS = 4
SPARK_RUNS = 3
COMPILE_RUNS = 9
LOOK_SECONDS = 0.2
WARM_LOOKS = 600
"""How often to look whether queries are ready before they are measured anyway: a lake that is too large to be copied
never is."""


@dataclass(frozen=True)
class HistoryQuery:
    """A query by its short name, its title, and a template of its text. Each run has constants of its own, if any."""

    name: str
    title: str
    template: Template

    def text(self, city: City, turn: int) -> str:
        since = timedelta(hours=turn * 7 % max(1, city.events * STEP_SECONDS // 3_600))
        first, last = (f"{START + since + timedelta(hours=each):%Y-%m-%dT%H:%M:%SZ}" for each in (0, 1))
        text = self.template.substitute(
            event=turn * 7_919 % city.events,
            sensor=turn * 13 % city.sensors,
            place=place_of(city.places + turn % city.platforms),
            above=50 + turn,
            low=10 + turn,
            first=first,
            last=last,
            digit=turn % 3,
            region=turn % 2,
            limit=99 - turn % 5,
        )
        return f"PREFIX sosa: <{SOSA}> PREFIX xsd: <{XSD}> PREFIX city: <{BASE}> {text}"

    @property
    def gives_triples(self) -> bool:
        return self.name == "construct"


QUERIES = tuple(
    HistoryQuery(name, title, Template(text))
    for name, title, text in re.findall(r"# (\w+): (.*)\n(.*)\n", Path(__file__).with_name("sparql.rq").read_text())
)
TITLES = {each.name: each.title for each in QUERIES}


class Oxigraph:
    """A store on disk of named graphs whose default graph has every triple once more.

    Its union of all graphs (`use_default_graph_as_union`) needs no second copy, but answers half as fast.
    """

    def __init__(self, directory: Path) -> None:
        self._store = ox.Store(directory)

    def load(self, bodies: Iterable[bytes]) -> float:
        """Load N-Quads, in bulk, and lay them out for reading. Return the seconds that the store took."""
        quads = b"".join(bodies)
        triples = b"".join(line.rpartition(b" <")[0] + b" .\n" for line in quads.splitlines())
        began = time.perf_counter()
        self._store.bulk_load(quads, format=ox.RdfFormat.N_QUADS)
        self._store.bulk_load(triples, format=ox.RdfFormat.N_TRIPLES)
        self._store.flush()
        self._store.optimize()
        return time.perf_counter() - began

    def answer(self, text: str) -> bytes:
        """Return the bytes that a server would send: SPARQL JSON results, or N-Triples."""
        found = self._store.query(text)
        if isinstance(found, ox.QueryTriples):
            return found.serialize(format=ox.RdfFormat.N_TRIPLES) or b""
        return found.serialize(format=ox.QueryResultsFormat.JSON) or b""


def measure_compiler(city: City) -> dict[str, dict[str, float]]:
    """Return by query the milliseconds until it is SQL, in this process: `first`, and `again` with other constants."""
    known = _make_statistics(city)

    def compile_ms(text: str) -> float:
        began = time.perf_counter()
        compile_query(parse_query(text), "duckdb", known)
        return (time.perf_counter() - began) * 1_000

    compile_ms("ASK {}")
    found = {}
    for query in QUERIES:
        first, *again = (compile_ms(query.text(city, turn)) for turn in range(1 + COMPILE_RUNS))
        found[query.name] = {"first": round(first, 2), "again": round(median(again), 2)}
    return found


def _make_statistics(city: City) -> Statistics:
    """Return the counts that a query process takes in the lake, so that plans are the same as there."""
    events, places = city.events, city.platforms + city.places - 1
    values = {"madeBySensor": city.sensors, "observedProperty": len(PROPERTIES), "hasSimpleResult": 10_000}
    counts = {
        RDF_TYPE: TripleCounts(events, events, events, 1),
        **{iri(SOSA + name): TripleCounts(events, events, events, number) for name, number in values.items()},
        iri(f"{SOSA}resultTime"): TripleCounts(events, events, events, events),
        iri(f"{SOSA}isHostedBy"): TripleCounts(city.sensors, city.sensors, city.sensors, city.platforms),
        iri(PART_OF): TripleCounts(places, places, places, city.places),
    }
    families = {iri(f"{SOSA}hasSimpleResult"): Family.DOUBLE, iri(f"{SOSA}resultTime"): Family.DATETIME}
    kinds = {
        each: PredicateKind(frozenset({families.get(each, Family.IRI)}), short=True, unique=True) for each in counts
    }
    total = TripleCounts(city.quads, city.quads, events + city.sensors + places, events + city.sensors)
    numbers = {predicate: number for number, predicate in enumerate(counts)}
    return Statistics(counts, total, kinds, numbers, complete=True, blank=False)


def run(quads: int, runs: int, say: Say, *, spark: bool) -> Report:
    """Measure every query so often after it was asked once, on Spark too if asked for. Raises Disagreement."""
    city, machine = City(quads), Machine()
    compiled = measure_compiler(city)
    with make_directory() as directory:
        oxigraph = Oxigraph(directory)
        say(f"loading {city.quads:,} quads into pyoxigraph")
        loaded = oxigraph.load(city.write_bodies(BODY_EVENTS))
        say("starting the broker")
        with start_broker() as broker:
            report = uvloop.run(_measure(broker.settings.url, city, runs, oxigraph, say, spark=spark))
    report["load_s"]["oxigraph"] = round(loaded, 1)
    again = [each["again"] for each in compiled.values()]
    first = median(each["first"] for each in compiled.values())
    summary = {"first": first, "again": median(again), "slowest_again": max(again), "queries": compiled}
    return {"machine": machine.describe(oxigraph=ox.__version__), **report, "compile_ms": summary}


async def _measure(url: str, city: City, runs: int, oxigraph: Oxigraph, say: Say, *, spark: bool) -> Report:
    """Measure a broker that holds nothing yet, beside a store that holds everything."""
    async with AsyncClient(url) as client:
        began = time.perf_counter()
        last = last_position(await publish_bodies(client, "bench", _show_progress(city, say), PUBLISHERS))
        say("waiting until everything is stored")
        while parse_position((await client.health())["stored"] or "earliest") < last:
            await asyncio.sleep(LOOK_SECONDS)
        loaded = time.perf_counter() - began
        say("waiting until queries are ready")
        for _ in range(WARM_LOOKS):
            if (await client.query("ASK {}", explain="json", engine="duckdb"))["files"]["copied"]:
                break
            await asyncio.sleep(LOOK_SECONDS)
        found = {}
        for number, query in enumerate(QUERIES, 1):
            say(f"query {number} of {len(QUERIES)}: {query.title}")
            found[query.name] = await _measure_query(client, query, city, runs, oxigraph, spark=spark)
    sizes = {"quads": city.quads, "events": city.events, "runs": runs}
    return {**sizes, "load_s": {"triplewire": round(loaded, 1)}, "queries": found}


def _show_progress(city: City, say: Say) -> Iterator[bytes]:
    total = city.events // BODY_EVENTS + 1
    for number, body in enumerate(city.write_bodies(BODY_EVENTS)):
        if number % max(1, total // 10) == 0:
            say(f"publishing, {100 * number // (total + 1)} %")
        yield body


async def _measure_query(
    client: AsyncClient, query: HistoryQuery, city: City, runs: int, oxigraph: Oxigraph, *, spark: bool
) -> Report:
    """Return medians in milliseconds, after a run that is not counted. Raises Disagreement."""
    theirs, counts = list[float](), list[int]()
    for turn in range(1 + runs):
        began = time.perf_counter()
        body = oxigraph.answer(query.text(city, turn))
        theirs.append(time.perf_counter() - began)
        counts.append(count_rows(query, body))

    async def measure(engine: str, turns: int) -> float:
        taken = []
        for turn in range(turns):
            text, format = query.text(city, turn % len(counts)), "ntriples" if query.gives_triples else "json"
            began = time.perf_counter()
            async with client.answer(text, format=format, engine=engine) as answer:
                body = b"".join([piece async for piece in answer])
            taken.append(time.perf_counter() - began)
            check_rows(query, engine, count_rows(query, body), counts[turn % len(counts)])
        return round(median(taken[1:]) * 1_000, 2)

    duckdb = await measure("duckdb", 1 + runs)
    spark_ms = await measure("spark", 1 + SPARK_RUNS) if spark else None
    oxigraph_ms = round(median(theirs[1:]) * 1_000, 2)
    return {
        "rows": round(median(counts)),
        "duckdb_ms": duckdb,
        "spark_ms": spark_ms,
        "oxigraph_ms": oxigraph_ms,
        "ratio": round(oxigraph_ms / duckdb, 2),
    }


def count_rows(query: HistoryQuery, body: bytes) -> int:
    """Return the number of solutions, or of triples, of an answer as it was sent."""
    return len(set(body.splitlines())) if query.gives_triples else len(orjson.loads(body)["results"]["bindings"])


def check_rows(query: HistoryQuery, engine: str, found: int, right: int) -> None:
    check_count(query.title, found, right, engine + " gives {found} rows, pyoxigraph {right}")


def make_tables(report: Mapping[str, Any]) -> list[RenderableType]:
    def write(value: float | None) -> str:
        return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    rows = []
    for name, query in report["queries"].items():
        times, ratio = (query[key] for key in ("duckdb_ms", "spark_ms", "oxigraph_ms")), query["ratio"]
        factor = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"
        rows.append((TITLES.get(name, name), f"{query['rows']:,}", *map(write, times), factor, make_ratio_bar(ratio)))
    columns = ("query", "rows", "DuckDB", "Spark", "pyoxigraph", "times", "pyoxigraph faster │ DuckDB faster")
    table = make_table(f"SPARQL over {report['quads']:,} quads, median of {report['runs']} runs, ms", columns, rows)
    table.box, table.columns[-1].justify = None, "left"
    loads, compiled, machine = report["load_s"], report["compile_ms"], report["machine"]
    below = (
        f"{machine['cores']} cores, {machine['memory_gb']} GB; loading took {loads['triplewire']:,} s, "
        f"pyoxigraph {loads['oxigraph']:,} s\ncompiling: {compiled['first']:.1f} ms for a new structure, "
        f"{compiled['again']:.1f} ms for one seen before (slowest {compiled['slowest_again']:.1f})"
    )
    return [table, Text(below, "dim")]


def make_ratio_bar(ratio: float) -> Text:
    """Return a bar to the right if DuckDB is faster, to the left if pyoxigraph is; six cells are ten times."""
    length = max(-24, min(24, round(log10(max(ratio, 1e-4)) * 6)))
    return Text.assemble((("█" * -length).rjust(18)[-18:], "red"), "│", ("█" * length, "green"))


def draw(report: Mapping[str, Any]) -> str:
    """Draw a bar for each engine and query, on a scale of powers of ten."""
    engines = (("duckdb_ms", "DuckDB", BLUE), ("spark_ms", "Spark", ORANGE), ("oxigraph_ms", "pyoxigraph", SILVER))
    # Times below the resolution of the clock count as a hundredth of a millisecond.
    times = [
        (TITLES.get(name, name), title, max(0.01, query[key]), colour)
        for name, query in report["queries"].items()
        for key, title, colour in engines
        if query[key] is not None
    ]
    low = floor(log10(min(each for _, _, each, _ in times)))
    high = max(low + 1, ceil(log10(max(each for _, _, each, _ in times))))
    bars = [
        Bar(f"{query}, {engine}", (log10(each) - low) / (high - low), colour, f"{each:g}")
        for query, engine, each, colour in times
    ]
    left, top, width = 250, 44, 480
    bottom = top + len(bars) * BAR_STEP
    parts = [draw_text(10, 20, f"SPARQL over {report['quads']:,} quads: warm median, milliseconds", size=14)]
    for power in range(low, high + 1):
        x = left + round(width * (power - low) / (high - low), 1)
        parts += [draw_line(x, top - 6, x, bottom), draw_text(x, bottom + 16, f"{10.0**power:g} ms", "middle", GREY)]
    return draw_sheet(left + width + 70, bottom + 30, [*parts, *draw_bars(bars, left, top, width)])
