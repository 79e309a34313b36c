"""Lakes whose events are known, for what goes out and comes in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox

from triplewire.model import Event
from triplewire.model.errors import Unavailable
from triplewire.model.terms import TW, XSD
from triplewire.storage.lake.data_files import FileWriter
from triplewire.storage.lake.delta import DeltaLake
from triplewire.storage.lake.entries import LakeEntries
from triplewire.storage.lake.ports import CommitBatch
from triplewire.storage.log.appending import EntryRow, entries_table

TERMS = (
    "<urn:a>",
    '"plain"',
    '"tab\\t\\"quoted\\" \\\\ <urn:x> . é 𝄞\\n"@en',
    f'"007"^^<{XSD}integer>',
    '<<( <urn:s> <urn:p> "in <urn:it>" )>>',
    '"line\u2028end"',
)
STREAMS = ("even", "odd")
SOURCES = (None, "roof", 'said "so" \\ then')
OTHERS = (None, None, '{"Relay-Path":"a/b, c/d","X-Said":"\\"é\\" \\\\ x"}', None, '{"X-Empty":""}')
"""What else is said, as JSON."""
SECOND = 1_000_000


def told(number: int) -> Event:
    quads = [f"<urn:s{quad % 2}>\t<urn:p{quad}>\t{TERMS[(number + quad) % 6]}" for quad in range(1 + number % 4)]
    return Event(f"urn:event:{number // 2 if number % 7 == 1 else number}", "\n".join(quads))


def rows(numbers: Sequence[int], sources: Sequence[str | None] = SOURCES) -> pa.Table:
    """As they stand in the log: times go back and forth, ids come again now and then."""
    return entries_table([[_row(number, told(number), sources) for number in numbers]])


def _row(at: int, event: Event, sources: Sequence[str | None]) -> EntryRow:
    said = (sources[at % len(sources)], sources[at // 3 % 2], _time(at), at * SECOND)
    return (at, STREAMS[at % 2], event.id, event.text, *said, "text/turtle", OTHERS[at % len(OTHERS)])


def _time(number: int) -> int:
    return (number * 7 % 5) * 60 * SECOND + number


def stored(folder: Path, files: Sequence[Sequence[int]]) -> DeltaLake:
    """A lake with a file for each list of positions."""
    lake = DeltaLake(folder)
    for number, positions in enumerate(files):
        lake.commit(CommitBatch("q", number, max(positions)), [FileWriter(folder).write(rows(positions))])
    return lake


class Cut:
    """Pages of a lake that end, as if the process did, after some of them."""

    def __init__(self, lake: DeltaLake, pages: int) -> None:
        self._entries, self._left = LakeEntries(lake), pages

    def head(self) -> int:
        return self._entries.head()

    def page(self, after: int, through: int, limit: int) -> tuple[pa.Table, int]:
        self._left -= 1
        if self._left < 0:
            raise Unavailable("cut")
        return self._entries.page(after, through, limit)


def quads_of(entries: pa.Table, *, headers: bool = True) -> list[str]:
    """What a reader of RDF should find, as sorted lines of canonical N-Quads."""
    found = []
    for row in entries.to_pylist():
        event = Event(row["event"], row["text"])
        found += [f"{quad.subject} {quad.predicate} {quad.object} {quad.graph}" for quad in event.quads]
        if headers:
            found += _headers(row)
    return sorted(set(found))


def _headers(row: dict[str, object]) -> list[str]:
    subject = ox.NamedNode(str(row["event"]))
    names = ("stream", "source", "application", "extensions")
    texts = {name: ox.Literal(str(row[name])) for name in names if row[name] is not None}
    instants = {name: ox.Literal(_iso(int(str(row[name]))), datatype=_DATE_TIME) for name in ("time", "received")}
    return [str(ox.Triple(subject, ox.NamedNode(TW + name), each)) for name, each in (texts | instants).items()]


_DATE_TIME = ox.NamedNode(XSD + "dateTime")


def _iso(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, SECOND)
    minutes, second = divmod(seconds, 60)
    fraction = f".{rest:06d}".rstrip("0") if rest else ""
    return f"1970-01-01T00:{minutes:02d}:{second:02d}{fraction}Z"
