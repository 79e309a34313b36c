"""`bench history`: how fast the lake takes quads in, what they take on the disk, and how little a query reads."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from triplewire.bench.history_data import QUADS, STREAMS, Day, nquads
from triplewire.bench.history_house import keep_house
from triplewire.bench.history_oxigraph import VERSION, Load, load, size, write
from triplewire.bench.history_reads import shares
from triplewire.bench.history_store import Ingest, Store, store
from triplewire.bench.machine import description, reference_ms
from triplewire.config import Settings
from triplewire.model.clock import SystemClock
from triplewire.storage.lake.ports import Lake
from triplewire.storage.log.ports import Publication
from triplewire.storage.log.sqlite import SqliteLog

BODY_EVENTS = 1_000
FIRST_EVENTS = 10
"""Of the log: they go all the way before the clock starts."""
FRESH_TIMES = 10

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to run: how many quads."""

    quads: int = 1_000_000


def run(plan: Plan, say: Say) -> dict[str, Any]:
    """Everything that the benchmark measures, by name."""
    day, before = Day(plan.quads), reference_ms()
    with tempfile.TemporaryDirectory(prefix="triplewire-history-") as directory:
        path = Path(directory)
        settings = Settings(data=path / "data")
        fill(day, settings.log, path / "quads.nq", say)
        say("starting Spark and the store query")
        with store(settings, FIRST_EVENTS) as running:
            say(f"pyoxigraph loads {day.quads:,} quads")
            theirs = load(path / "quads.nq", path / "rival")
            report = _measured(day, running, settings.lake, say)
    report["oxigraph"] = _loaded(day, theirs)
    report["ratio"] = round(report["ingest"]["quads_per_s"] / report["oxigraph"]["quads_per_s"], 2)
    machine = {**description(), "oxigraph": VERSION, "reference_ms": [round(before), round(reference_ms())]}
    return {"machine": machine, "quads": day.quads, "events": day.events, **report}


def fill(day: Day, path: Path, file: Path, say: Say) -> None:
    """The log for us, a file of N-Quads for the rival."""
    log = SqliteLog(path, SystemClock())
    step = max(1, day.events // BODY_EVENTS // 4)

    def bodies() -> Iterator[bytes]:
        for number, publication in enumerate(day.publications(BODY_EVENTS)):
            if number % step == 0:
                say(f"filling the log, {100 * number * BODY_EVENTS // day.events} %")
            log.append([publication])
            yield nquads(publication)

    write(bodies(), file)
    log.close()


def _measured(day: Day, running: Store, table: Path, say: Say) -> dict[str, Any]:
    say("the store query takes them in")
    ingest = running.drain()
    fresh, files = on_disk(running.lake, table), len(running.lake.files().files)
    say("how soon new events can be asked for")
    delays = [running.freshness(Publication(STREAMS[0], [day.event(day.events + n)])) for n in range(FRESH_TIMES)]
    running.query.stop()
    kept = keep_house(running.work.spark, table, say)
    compacted = on_disk(running.lake, table)
    say("how much of it queries read")
    return {
        "ingest": _taken(ingest),
        "bytes_per_quad": {"fresh": _each(fresh, day), "compacted": _each(compacted, day)},
        "files": {"fresh": files, "compacted": kept.files, "zones": kept.zones},
        "compaction_s": round(kept.compaction, 2),
        "balancing_s": round(kept.balancing, 2),
        "reads": shares(day, table),
        "freshness_ms": {"median": round(median(delays) * 1_000), "max": round(max(delays) * 1_000)},
    }


def on_disk(lake: Lake, table: Path) -> int:
    """What the files of the table take, and its log."""
    return lake.files().size + size(table / "_delta_log")


def _taken(ingest: Ingest) -> dict[str, Any]:
    return {
        "quads_per_s": round(ingest.events * QUADS / ingest.seconds),
        "seconds": round(ingest.seconds, 2),
        "batches": ingest.batches,
        "writing_cpu_s": round(ingest.cpu, 2),
        "memory_mb": round(ingest.memory / 1e6),
    }


def _loaded(day: Day, theirs: Load) -> dict[str, Any]:
    rate = round(day.quads / theirs.seconds)
    return {"quads_per_s": rate, "seconds": round(theirs.seconds, 2), "bytes_per_quad": _each(theirs.size, day)}


def _each(size: int, day: Day) -> float:
    return round(size / day.quads, 2)
