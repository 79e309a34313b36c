"""`bench match`: the pipeline's own `match` transform in Spark, beside pyoxigraph merely parsing the same events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pyoxigraph as ox
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from bench.harness import BASE, Machine, Report, Say, check_count, make_directory, measure_children, measure_tree
from bench.match_oracle import MatchCounter, SampledEvent, count_by_brute_force, measure_parser
from bench.match_templates import FilledTemplate
from bench.match_workloads import ChosenWorkload, MatchWorkload, choose_workload
from bench.plots import BLUE, ORANGE, PALE, SILVER, Bar, draw_bars, draw_sheet, draw_titles
from bench.spark import start_spark
from triplewire.config import Settings
from triplewire.config.heap import freeze_heap
from triplewire.model import ENTRIES, MATCHED_COLUMNS, MATCHES, Subscription
from triplewire.service.wiring import pipeline_ports
from triplewire.spark.jobs.exchange import BLOCKS, pack_table, unpack_blocks
from triplewire.spark.jobs.match import LaneMatcher, open_matcher
from triplewire.spark.jobs.ports import JobPorts
from triplewire.spark.jobs.source import BLOCK_EVENTS
from triplewire.spark.jobs.workers import hide_pandas
from triplewire.storage.outbox import OutboxLane
from triplewire.storage.registry.ontologies import BATCH_EVENTS, ONTOLOGY, LoadedOntology, ontology_to_value
from triplewire.storage.registry.subscriptions import SHAPE, SUBSCRIPTION, subscription_to_value

BASE_SUBSCRIPTIONS = 1_000
"""Subscriptions beside which growth is measured."""
WARM_UP = 20_000
PARSED = 20_000
"""Events of each run that pyoxigraph parses: each takes it as long as each of all."""
SAMPLE, RESIDUAL_SAMPLE = 200, 20
"""Events that are checked by brute force; fewer where each pair is a query of its own."""
CHUNK = 20_000
"""Subscriptions that are put in one transaction."""
CORES = 2
BEGAN = 1_794_816_000_000_000
"""The time of the first event, in microseconds; each is a millisecond after the one before."""


@dataclass(frozen=True)
class Registered:
    """The subscriptions of a workload, in a registry. They are made again when they are looked at: a million of them
    would take more memory than the index that is measured."""

    chosen: ChosenWorkload
    first: int
    """The position of the first; the others follow without a gap."""
    shapes: int
    ports: JobPorts

    @property
    def last(self) -> int:
        return self.first + len(self) - 1

    @cached_property
    def counter(self) -> MatchCounter:
        made = map(self.make_subscription, range(len(self)))
        return MatchCounter.of(made, (each.shape for each in self.chosen.workload.templates))

    def questions(self) -> Iterator[FilledTemplate]:
        return map(self.chosen.workload.question, range(len(self)))

    def __len__(self) -> int:
        return self.chosen.subscriptions

    def make_subscription(self, number: int) -> Subscription:
        return self.chosen.workload.question(number).make_subscription(f"{number:08x}", self.first + number)


def register(chosen: ChosenWorkload, directory: Path) -> Registered:
    """Put all subscriptions into a registry of their own, as workers open it."""
    ports = pipeline_ports(Settings(data=directory))
    directory.mkdir(parents=True)
    registry = ports.open_registry()
    shapes = {each.shape.key: each.shape for each in chosen.workload.templates}
    changes: list[tuple[str, str, Mapping[str, Any]]] = [
        (SHAPE, key, shape.to_value()) for key, shape in shapes.items()
    ]
    if (text := chosen.ontology) is not None:
        loaded = LoadedOntology("bench", text, triples=text.count("\n") + 1, classes=0, properties=0)
        changes.insert(0, (ONTOLOGY, "bench", ontology_to_value(loaded)))
    found = Registered(chosen, registry.put(changes)[-1] + 1, len(shapes), ports)
    for first in range(0, len(found), CHUNK):
        made = map(found.make_subscription, range(first, min(len(found), first + CHUNK)))
        registry.put([(SUBSCRIPTION, each.id, subscription_to_value(each)) for each in made])
    return found


@dataclass(frozen=True)
class EventFiles:
    """Events as the log's source gives them to Spark, in Parquet files, at positions that follow one another."""

    directory: Path
    numbers: range

    def __len__(self) -> int:
        return len(self.numbers)

    def read_texts(self, count: int) -> list[str]:
        """Return the first so many, or those of a group of rows where that is less."""
        first = next(unpack_blocks(pq.ParquetFile(self._files[0]).iter_batches(1)))
        texts: list[str] = first["text"].slice(0, count).to_pylist()
        return texts

    def sample(self, count: int) -> list[SampledEvent]:
        """Return so many, evenly spread."""
        names = ["position", "stream", "event", "text"]
        blocks = (batch for file in self._files for batch in pq.ParquetFile(file).iter_batches(1))
        table = pa.concat_tables(entries.select(names) for entries in unpack_blocks(blocks))
        chosen = range(0, len(self), max(1, len(self) // count))[:count]
        columns = (table[name].take(pa.array(chosen, pa.int64())).to_pylist() for name in names)
        return [SampledEvent(*row) for row in zip(*columns, strict=True)]

    def remove(self) -> None:
        for file in self._files:
            file.unlink()

    @property
    def _files(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))


def write_events(workload: MatchWorkload, numbers: range, before: int, directory: Path, parts: int) -> EventFiles:
    """Draw events and write them as so many files, in blocks as large as those of the pipeline, from the position after
    `before` on."""
    directory.mkdir(parents=True)
    bounds = [len(numbers) * part // parts for part in range(parts + 1)]
    for part, (first, last) in enumerate(pairwise(bounds)):
        file = directory / f"{part:04}.parquet"
        with pq.ParquetWriter(file, BLOCKS, compression="none", use_dictionary=False) as writer:
            for start in range(first, last, BLOCK_EVENTS):
                chosen = numbers[start : min(last, start + BLOCK_EVENTS)]
                for block in pack_table(_make_entries(workload, chosen, before + 1 + start).select(MATCHED_COLUMNS)):
                    writer.write_batch(block)
    return EventFiles(directory, numbers)


def _make_entries(workload: MatchWorkload, numbers: range, position: int) -> pa.Table:
    streams, texts = zip(*map(workload.event, numbers), strict=True)
    size = len(numbers)
    times = [BEGAN + 1_000 * number for number in numbers]
    columns = {
        "position": range(position, position + size),
        "stream": streams,
        "event": [f"{BASE}e/{number}" for number in numbers],
        "text": texts,
        "time": times,
        "received": times,
        "syntax": ["application/n-quads"] * size,
    }
    none = [None] * size
    return pa.table(
        {field.name: pa.array(columns.get(field.name, none), field.type) for field in ENTRIES}, schema=ENTRIES
    )


@dataclass(frozen=True)
class MatchEngine:
    """A running Spark session."""

    spark: SparkSession

    def match(self, events: EventFiles, ports: JobPorts) -> tuple[float, pa.Table]:
        """Return the seconds until all matches of the events have come to the driver, and the matches."""
        matches = self._read(events).mapInArrow(partial(_match_blocks, ports), from_arrow_schema(BLOCKS))
        return _time(lambda: pa.concat_tables([MATCHES.empty_table(), *unpack_blocks(matches.toArrow().to_batches())]))

    def pass_on(self, events: EventFiles) -> float:
        """Return the seconds that Spark takes to do the same without matching anything."""
        return _time(self._read(events).mapInArrow(_drop_all, "position long").toArrow)[0]

    def _read(self, events: EventFiles) -> DataFrame:
        return self.spark.read.schema(from_arrow_schema(BLOCKS)).parquet(str(events.directory))


_matchers: dict[Path, LaneMatcher] = {}
"""The matchers of this worker process, by the directory of their index."""


def _match_blocks(ports: JobPorts, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Match blocks with a matcher that lives across tasks, as the one of a resident task does."""
    hide_pandas()
    for entries in unpack_blocks(batches):
        if ports.index_files not in _matchers:
            _matchers[ports.index_files] = open_matcher(ports, OutboxLane.FAST)
            freeze_heap()
        yield from pack_table(_matchers[ports.index_files].match(entries))


def _time(work: Callable[[], pa.Table]) -> tuple[float, pa.Table]:
    began = time.perf_counter()
    table = work()
    return time.perf_counter() - began, table


def _drop_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for entries in unpack_blocks(batches):
        yield from entries.select(["position"]).slice(0, 0).to_batches()


@contextmanager
def _start_engine() -> Iterator[MatchEngine]:
    """Start Spark as the pipeline does, but that a file of events is a task, whatever its size."""
    with start_spark("match", Settings(), f"local[{CORES}]") as spark:
        for name in ("maxPartitionBytes", "openCostInBytes"):
            spark.conf.set(f"spark.sql.files.{name}", str(2**30))
        yield MatchEngine(spark)


@dataclass(frozen=True)
class MatchOptions:
    """`growth` also measures few subscriptions with as many matches."""

    workload: str
    subscriptions: int
    events: int
    runs: int
    growth: bool


@dataclass(frozen=True)
class MatchRuns:
    """Runs over one registry: events a second of each, parsed and matched, and the last of them."""

    rates: list[float]
    parsed: list[float]
    matches: list[int]
    events: EventFiles
    table: pa.Table


@dataclass(frozen=True)
class MatchBench:
    """A benchmark under way. No event is drawn twice."""

    options: MatchOptions
    engine: MatchEngine
    directory: Path
    say: Say

    def register(self, chosen: ChosenWorkload, name: str) -> Registered:
        self.say(f"{chosen.subscriptions:,} subscriptions into a registry")
        return register(chosen, self.directory / name)

    def warm_up(self, registered: Registered) -> float:
        """Let the workers load the registry and match events that are not measured. Return the seconds."""
        return self.engine.match(self._write_events(registered, 0, WARM_UP), registered.ports)[0]

    def measure(self, registered: Registered) -> MatchRuns:
        rates, parsed, counts = list[float](), list[float](), list[int]()
        events = None
        for turn in range(self.options.runs):
            if events is not None:
                events.remove()
            events = self._write_events(registered, 1 + turn, self.options.events)
            seconds, table = self.engine.match(events, registered.ports)
            rates.append(len(events) / seconds)
            parsed.append(measure_parser(events.read_texts(PARSED)))
            counts.append(registered.counter.count(table))
            self.say(f"run {turn + 1} of {self.options.runs}: {rates[-1]:,.0f} events/s, parsing {parsed[-1]:,.0f}")
        assert events is not None
        return MatchRuns(rates, parsed, counts, events, table)

    def check(self, registered: Registered, runs: MatchRuns) -> Report:
        """Check events of the last run, each against every subscription. Raises Disagreement."""
        plain = all(each.plain for each in registered.chosen.workload.templates)
        sample = runs.events.sample(SAMPLE if plain else RESIDUAL_SAMPLE)
        self.say(f"checking {len(sample)} events by brute force")
        right = count_by_brute_force(sample, registered.questions())
        for each in sample:
            check_matches(each.event, registered.counter.count(runs.table, each.position), right[each.position])
        return {"events": len(sample), "matches": right.total()}

    def _write_events(self, registered: Registered, turn: int, count: int) -> EventFiles:
        """Write the events of a turn, at positions after all that were ever made; two files for each core, if each then
        has a batch at least."""
        first = turn * max(self.options.events, WARM_UP)
        folder = self.directory / f"events-{len(registered)}-{turn}"
        parts = max(CORES, min(2 * CORES, count // BATCH_EVENTS))
        numbers = range(first, first + count)
        return write_events(registered.chosen.workload, numbers, registered.last + first, folder, parts)


def run(options: MatchOptions, say: Say) -> Report:
    """Raises Disagreement, or Unsupported for an unknown workload."""
    chosen, machine = choose_workload(options.workload, options.subscriptions), Machine()
    say("starting Spark")
    with make_directory() as directory, _start_engine() as engine:
        report = _measure(MatchBench(options, engine, directory, say), chosen)
    return {"machine": machine.describe(oxigraph=ox.__version__), **report}


def _measure(bench: MatchBench, chosen: ChosenWorkload) -> Report:
    options, engine = bench.options, bench.engine
    few = choose_workload(options.workload, min(BASE_SUBSCRIPTIONS, -(-options.subscriptions // 10)), chosen.matches)
    base = bench.register(few, "few")
    bench.say("warming up")
    bench.warm_up(base)
    grown = bench.measure(base) if options.growth else None
    empty = measure_children("python")
    registered = bench.register(chosen, "all")
    bench.say("loading them")
    ready = bench.warm_up(registered)
    full = measure_children("python")
    runs = bench.measure(registered)
    rate, parsing = median(runs.rates), median(runs.parsed)
    index = (each.stat() for each in registered.ports.index_files.rglob("*") if each.is_file())
    # Blocks on the disk are the least that is mapped of the index.
    size = max(full - empty, sum(each.st_blocks * 512 for each in index))
    return {
        "workload": options.workload,
        "subscriptions": len(registered),
        "shapes": registered.shapes,
        "events": options.events,
        "runs": [round(each) for each in runs.rates],
        "events_per_s": round(rate),
        "matches": {"per_event": round(median(runs.matches) / options.events, 3), "all": sum(runs.matches)},
        "parse_events_per_s": round(parsing),
        "ratio": round(rate / parsing, 3),
        "passed_on_per_s": round(len(runs.events) / engine.pass_on(runs.events)),
        "load_s": round(ready, 1),
        "bytes_per_subscription": round(size / len(registered)),
        "memory_mb": round(measure_tree([psutil.Process().pid]).memory / 1e6),
        "growth": None
        if grown is None
        else {
            "from": len(base),
            "events_per_s": round(median(grown.rates)),
            "matches_per_event": round(median(grown.matches) / options.events, 3),
            "times": round(median(grown.rates) / rate, 2),
        },
        "checked": bench.check(registered, runs),
    }


def check_matches(event: str, found: int, right: int) -> None:
    check_count(event, found, right, "{found} subscriptions were matched, brute force matches {right}")


def draw(report: Mapping[str, Any]) -> str:
    """Draw events a second of every run, beside parsing and beside Spark alone."""
    rates = [(f"run {number}", rate, BLUE) for number, rate in enumerate(report["runs"], 1)]
    if growth := report["growth"]:
        rates.append((f"with {growth['from']:,} subscriptions", growth["events_per_s"], PALE))
    rates.append(("pyoxigraph, parsing", report["parse_events_per_s"], SILVER))
    rates.append(("Spark, matching nothing", report["passed_on_per_s"], ORANGE))
    most = max(rate for _, rate, _ in rates)
    title = f"{report['workload']}: {report['subscriptions']:,} subscriptions of {report['shapes']:,} shapes"
    below = f"{report['matches']['per_event']:,} matches an event, {report['ratio']} times as fast as parsing"
    bars = [Bar(name, rate / most, colour, f"{rate:,.0f}") for name, rate, colour in rates]
    parts = [*draw_titles(f"{title}, events a second", below), *draw_bars(bars, 190, 52, 520)]
    return draw_sheet(800, 64 + len(bars) * 20, parts)
