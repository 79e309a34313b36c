"""What each dialect costs: writing and reading one event, in microseconds, beside N-Quads and lines of JSON; and
judging one by shapes, in the process that does so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pyarrow as pa

from triplewire.bench.doors_tellings import TELLINGS, written
from triplewire.http.delivery.options import FORMATS
from triplewire.http.publish.validation import ShaclValidator
from triplewire.model import ENTRIES, EventHeaders
from triplewire.model.terms import XSD
from triplewire.rdf import TURTLE, decode, new_id, to_nquads
from triplewire.rdf.envelopes import CLOUD_EVENT, JELLY, MESSAGES, NDJSON, QUADS, ZTREAMY, Envelope
from triplewire.rdf.shacl import parse_shapes
from triplewire.rdf.syntaxes import N_QUADS, TRIG

EVENTS = 2_000
RUNS = 5
JUDGED = 200
EX = "http://example.org/"
_PAIRS: dict[str, Envelope] = {
    "nquads": QUADS,
    "ndjson": NDJSON,
    "ztreamy": ZTREAMY,
    "cloudevents": CLOUD_EVENT,
    "messages-nquads": MESSAGES[N_QUADS],
    "messages-trig": MESSAGES[TRIG],
    "jelly": JELLY,
}
"""By the names of formats, how what they write is read."""
SHAPES = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <{EX}> . @prefix xsd: <{XSD}> .
ex:S a sh:NodeShape ; sh:targetClass ex:Reading ;
  sh:property [ sh:path ex:value ; sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:double ; sh:maxInclusive 100.0 ] ,
    [ sh:path ex:sensor ; sh:minCount 1 ; sh:nodeKind sh:IRI ] , [ sh:path ex:unit ; sh:in ( "C" "F" ) ] ."""


def dialects(events: int = EVENTS, runs: int = RUNS, judged: int = JUDGED) -> dict[str, Any]:
    """Microseconds per event of five quads, the median of some runs: `encode` and `decode` of each dialect, with the
    bytes of an event; and `shacl`, milliseconds per event that conforms and per one that does not."""
    table = made_table(events)
    told = {"nquads-body": _plain(table, runs)} | {name: _dialect(name, table, runs) for name in _PAIRS}
    told |= {name: _telling(name, table, runs) for name in TELLINGS}
    return {"events": events, "quads": 5, "dialects": told, "shacl": asyncio.run(_shacl(judged))}


def _plain(table: pa.Table, runs: int) -> dict[str, float]:
    """Nothing but quads, in one body: what all others are beside."""
    pairs = list(zip(table["event"].to_pylist(), table["text"].to_pylist(), strict=True))
    encode = _microseconds(lambda: [to_nquads(*each).encode() for each in pairs], runs, len(pairs))
    body = "".join(to_nquads(*each) for each in pairs).encode()
    read = _microseconds(lambda: decode(body, N_QUADS), runs, len(pairs))
    return {"encode_us": encode, "decode_us": read, "bytes": round(len(body) / len(pairs))}


def _dialect(name: str, table: pa.Table, runs: int) -> dict[str, float]:
    format, wrapping = next(each for each in FORMATS if each.name == name), _PAIRS[name]
    encode = _microseconds(lambda: written(format, table), runs, table.num_rows)
    parts = written(format, table)
    read = _microseconds(lambda: _read(wrapping, parts), runs, table.num_rows)
    return {"encode_us": encode, "decode_us": read, "bytes": round(sum(map(len, parts)) / len(parts))}


def _telling(name: str, table: pa.Table, runs: int) -> dict[str, float]:
    encode = _microseconds(lambda: TELLINGS[name](table), runs, table.num_rows)
    return {"encode_us": encode, "bytes": round(sum(map(len, TELLINGS[name](table))) / table.num_rows)}


def _read(wrapping: Envelope, parts: list[bytes]) -> int:
    """How many events are read; CloudEvents are a body each, as they are sent."""
    bodies = parts if wrapping is CLOUD_EVENT else [b"".join(parts)]
    count = 0
    for body in bodies:
        cutter = wrapping.cutter()
        for cut in [*cutter.feed(body), *cutter.end()]:
            count += len(wrapping.read(cut.data, EventHeaders(), new_id))
    return count


def _microseconds(work: Callable[[], object], runs: int, count: int) -> float:
    work()
    taken = []
    for _ in range(runs):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return round(median(taken) / count * 1e6, 1)


async def _shacl(judged: int) -> dict[str, float]:
    judges, shapes = ShaclValidator(), parse_shapes(SHAPES.encode(), TURTLE)
    try:
        began = time.monotonic()
        await judges.check(shapes)
        start = time.monotonic() - began
        good = await _judged(judges, shapes, [_text(n, "C") for n in range(judged)], wrong=0)
        bad = await _judged(judges, shapes, [_text(n, "K") for n in range(judged)], wrong=judged)
    finally:
        await judges.close()
    return {"start_seconds": round(start, 2), "conforms_ms": good, "violates_ms": bad}


async def _judged(judges: ShaclValidator, shapes: str, texts: list[str], *, wrong: int) -> float:
    await judges.judge("bench", shapes, texts[:10])
    began = time.monotonic()
    verdicts = await judges.judge("bench", shapes, texts)
    taken = time.monotonic() - began
    assert sum(each is not None for each in verdicts) == wrong, "the shapes do not decide what they should"
    return round(taken / len(texts) * 1e3, 2)


def _text(number: int, unit: str) -> str:
    reading, type = f"<{EX}reading/{number}>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = (
        (type, f"<{EX}Reading>"),
        (f"<{EX}sensor>", f"<{EX}sensor/{number % 50}>"),
        (f"<{EX}value>", f'"{number % 100}.5"^^<{XSD}double>'),
        (f"<{EX}unit>", f'"{unit}"'),
        (f"<{EX}at>", f'"2026-11-15T08:30:00Z"^^<{XSD}dateTime>'),
    )
    return "\n".join(f"{reading}\t{predicate}\t{obj}" for predicate, obj in lines)


def made_table(events: int) -> pa.Table:
    rows = [
        {
            "position": n + 1, "stream": "bench", "event": f"{EX}event/{n}", "text": _text(n, "C"), "source": "roof",
            "application": None, "time": 1_794_731_400_000_000 + n, "received": 1_794_731_400_000_000 + n,
            "syntax": N_QUADS.media_type, "extensions": None,
        }
        for n in range(events)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=ENTRIES)
