"""Dialects of `bench edge`: writing and reading one event in each, beside N-Quads and lines of JSON; and validating
one by shapes, in the process that does so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import pyarrow as pa

from bench.harness import Report, make_entries
from triplewire.http.delivery.options import FORMATS
from triplewire.http.dialects.ldes import LdesAddresses, write_members
from triplewire.http.dialects.mercure import MERCURE
from triplewire.http.formats.messages import EntryPieces, MessageFormat
from triplewire.http.publish.validation import ShaclValidator
from triplewire.http.webhooks.deliverer import WEBHOOK_FORMATS as HOOK_FORMATS
from triplewire.http.webhooks.deliverer import WEBHOOK_JSON
from triplewire.model import EventHeaders, format_position
from triplewire.model.terms import RDF_TYPE, XSD
from triplewire.rdf import TURTLE, decode, new_id, to_nquads
from triplewire.rdf.envelopes import CLOUD_EVENT, JELLY, MESSAGES, NDJSON, QUADS, ZTREAMY, Envelope
from triplewire.rdf.serializer import write_document
from triplewire.rdf.shacl import parse_shapes
from triplewire.rdf.syntaxes import N_QUADS, TRIG
from triplewire.security.webhooks import hub_signature, new_secret, signature_headers
from triplewire.storage.log import ports

EVENTS = 2_000
RUNS = 5
VALIDATED = 200
EX = "http://example.org/"
SHAPES = f"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <{EX}> . @prefix xsd: <{XSD}> .
ex:S a sh:NodeShape ; sh:targetClass ex:Reading ;
  sh:property [ sh:path ex:value ; sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:double ; sh:maxInclusive 100.0 ] ,
    [ sh:path ex:sensor ; sh:minCount 1 ; sh:nodeKind sh:IRI ] , [ sh:path ex:unit ; sh:in ( "C" "F" ) ] ."""

_READERS: dict[str, Envelope] = {
    "nquads": QUADS,
    "ndjson": NDJSON,
    "ztreamy": ZTREAMY,
    "cloudevents": CLOUD_EVENT,
    "messages-nquads": MESSAGES[N_QUADS],
    "messages-trig": MESSAGES[TRIG],
    "jelly": JELLY,
}
"""Readers of messages, by the names of formats."""
_SECRET = new_secret()


def make_events(count: int) -> pa.Table:
    """Return events of five quads as the log holds them."""
    at = 1_794_731_400_000_000
    return make_entries(
        {"position": n + 1, "event": f"{EX}event/{n}", "text": _write_text(n, "C"), "source": "roof"}
        | {"time": at + n, "received": at + n}
        for n in range(count)
    )


def _write_text(number: int, unit: str) -> str:
    pairs = (
        (RDF_TYPE, f"<{EX}Reading>"),
        (f"<{EX}sensor>", f"<{EX}sensor/{number % 50}>"),
        (f"<{EX}value>", f'"{number % 100}.5"^^<{XSD}double>'),
        (f"<{EX}unit>", f'"{unit}"'),
        (f"<{EX}at>", f'"2026-11-15T08:30:00Z"^^<{XSD}dateTime>'),
    )
    return "\n".join(f"<{EX}reading/{number}>\t{predicate}\t{obj}" for predicate, obj in pairs)


def _write_messages(format: MessageFormat, events: pa.Table) -> list[bytes]:
    pieces = EntryPieces(events)
    return [format.event(pieces, position) for position in events["position"].to_pylist()]


def _write_webhooks(events: pa.Table) -> list[bytes]:
    """Write calls with their signatures, which are part of each."""
    found = _write_messages(WEBHOOK_JSON, events)
    for number, body in enumerate(found):
        signature_headers(_SECRET, format_position(number), 0, body)
    return found


def _write_websub(events: pa.Table) -> list[bytes]:
    found = _write_messages(HOOK_FORMATS["nquads"], events)
    for body in found:
        hub_signature(_SECRET, body)
    return found


def _write_pages(events: pa.Table) -> list[bytes]:
    """Write pages of a history, with as many events on each as a full one has."""
    entries, at, size = events.to_pylist(), LdesAddresses("http://localhost:8080", "bench"), ports.SEGMENT_EVENTS
    pages = (entries[first : first + size] for first in range(0, len(entries), size))
    return [write_document("".join(write_members(at, page)), TRIG) for page in pages]


WRITERS: Mapping[str, Callable[[pa.Table], list[bytes]]] = {
    "webhook": _write_webhooks,
    "websub": _write_websub,
    "mercure": lambda events: _write_messages(MERCURE, events),
    "ldes": _write_pages,
}
"""Dialects that are only written: webhooks, WebSub, Mercure, and pages of LDES."""


def measure_dialects() -> Report:
    """Return microseconds for each event, the median of some runs, and its bytes, by dialect; and milliseconds to
    validate one."""
    events = make_events(EVENTS)
    pairs = list(zip(events["event"].to_pylist(), events["text"].to_pylist(), strict=True))
    body = "".join(to_nquads(*each) for each in pairs).encode()
    found: Report = {
        "nquads-body": {
            "encode_us": _measure_us(lambda: [to_nquads(*each).encode() for each in pairs]),
            "decode_us": _measure_us(lambda: decode(body, N_QUADS)),
            "bytes": round(len(body) / EVENTS),
        }
    }
    for name, wrapping in _READERS.items():
        format = next(each for each in FORMATS if each.name == name)
        parts = _write_messages(format, events)
        encode = _measure_us(lambda format=format: _write_messages(format, events))  # type: ignore[misc]
        read = _measure_us(lambda wrapping=wrapping, parts=parts: _read_messages(wrapping, parts))  # type: ignore[misc]
        found[name] = {"encode_us": encode, "decode_us": read, "bytes": round(sum(map(len, parts)) / len(parts))}
    for name, write in WRITERS.items():
        encode = _measure_us(lambda write=write: write(events))  # type: ignore[misc]
        found[name] = {"encode_us": encode, "bytes": round(sum(map(len, write(events))) / EVENTS)}
    return {"events": EVENTS, "quads": 5, "dialects": found, "shacl": asyncio.run(_measure_shacl())}


def _read_messages(wrapping: Envelope, parts: list[bytes]) -> int:
    """Return how many events were read; CloudEvents are a body each, as they are sent."""
    count = 0
    for body in parts if wrapping is CLOUD_EVENT else [b"".join(parts)]:
        cutter = wrapping.cutter()
        for cut in [*cutter.feed(body), *cutter.end()]:
            count += len(wrapping.read(cut.data, EventHeaders(), new_id))
    return count


def _measure_us(work: Callable[[], object]) -> float:
    work()
    taken = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return round(median(taken) / EVENTS * 1e6, 1)


async def _measure_shacl() -> Report:
    """Measure events that conform to shapes, and events that do not."""
    judges, shapes = ShaclValidator(), parse_shapes(SHAPES.encode(), TURTLE)

    async def measure(texts: Sequence[str], wrong: int) -> float:
        await judges.validate("bench", shapes, texts[:10])
        began = time.monotonic()
        verdicts = await judges.validate("bench", shapes, texts)
        taken = time.monotonic() - began
        assert sum(each is not None for each in verdicts) == wrong, "the shapes do not decide what they should"
        return round(taken / len(texts) * 1e3, 2)

    try:
        began = time.monotonic()
        await judges.check(shapes)
        start = round(time.monotonic() - began, 2)
        good, bad = ([_write_text(n, unit) for n in range(VALIDATED)] for unit in ("C", "K"))
        return {
            "start_seconds": start,
            "conforms_ms": await measure(good, 0),
            "violates_ms": await measure(bad, VALIDATED),
        }
    finally:
        await judges.close()
