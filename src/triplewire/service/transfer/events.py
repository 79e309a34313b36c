"""Events of a file: assembled from runs of canonical N-Quads, with the faults between them.

A run is a stretch of lines of one event. A position in the file suffices to resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from triplewire.model import Event, StreamEvent
from triplewire.model.errors import BadRequest, InputError
from triplewire.model.terms import TW
from triplewire.rdf import check_id
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.headers import NO_HEADER_VALUES, HeaderValues, make_headers, parse_headers
from triplewire.rdf.parser import EVENT_QUADS
from triplewire.storage.registry.streams import check_stream_name

# An event is a group of adjacent lines: triples with its headers, then quads in its graph. One regular expression finds
# a whole run, so that no quad is parsed by itself unless the file has a fault.

_IRI = r"<[^<> \n]*>"
_LITERAL = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"(?:\^\^<[^<> \n]*>|@[A-Za-z0-9-]+)?'
_HEADER = rf"<{re.escape(TW)}[a-z]+> {_LITERAL} \.\n"
_TRIPLE = r'[^ \n]+ [^ \n]+ [^" \n]+ \.\n'
"""A line outside of a graph whose object looks like one."""

_RUN = re.compile(
    rf"(?P<headers>(?P<about>{_IRI}) {_HEADER}(?:(?P=about) {_HEADER})*)"
    rf"|(?P<quads>(?!{_TRIPLE})[^\n]* (?P<graph>{_IRI}) \.\n(?:(?!{_TRIPLE})[^\n]* (?P=graph) \.\n)*)"
)
_NAMELESS = re.compile(rf"(?:{_IRI}|{_LITERAL}|_:[^ \n]+|\)>>) (_:[^ \n]+) \.\n")


@dataclass(frozen=True)
class EventRun:
    """A stretch of an event: its headers, or some of its quads as `Event.text` has them. `line` is where it begins;
    `key`, where there is one, is the same in all runs of an event and in no other next to it."""

    id: str
    headers: HeaderValues
    text: str
    line: int
    key: int | None = None

    @property
    def quads(self) -> int:
        return self.text.count("\n") + 1 if self.text else 0

    def begins_event(self, before: EventRun) -> bool:
        """Whether it belongs to another event than the run before it."""
        if self.id != before.id:
            return True
        if self.key is not None:
            return self.key != before.key
        return self.headers != NO_HEADER_VALUES and bool(before.text)


def split_runs(lines: str, line: int) -> Iterator[EventRun]:
    """Yield the runs of canonical N-Quads, all with this line number. Raises BadRequest for a triple outside of graphs
    that is no header, for a bad header value, and for a graph that is no IRI."""
    at = 0
    while at < len(lines):
        found = _RUN.match(lines, at)
        if found is None:
            raise _stray(lines[at : lines.index("\n", at) + 1])
        yield _header_run(found, line) if found["quads"] is None else _quad_run(found, line)
        at = found.end()


def check_stream(headers: HeaderValues) -> HeaderValues:
    """Raises BadRequest for a bad name of a stream."""
    if headers.stream is not None:
        check_stream_name(headers.stream)
    return headers


def _header_run(found: re.Match[str], line: int) -> EventRun:
    ((id, headers),) = parse_headers(_tabbed(found["headers"], "").split("\n")).items()
    return EventRun(check_id(id), check_stream(headers), "", line)


def _quad_run(found: re.Match[str], line: int) -> EventRun:
    return EventRun(check_id(found["graph"][1:-1]), NO_HEADER_VALUES, _tabbed(found["quads"], found["graph"]), line)


def _tabbed(lines: str, graph: str) -> str:
    """Return lines without the graph, and with tabs: only an object contains spaces."""
    bare = lines.replace(f" {graph} .\n" if graph else " .\n", "\n")[:-1]
    return "\n".join([each.replace(" ", "\t", 2) for each in bare.split("\n")])


def _stray(line: str) -> BadRequest:
    found = _NAMELESS.search(line)
    if found and not re.match(_TRIPLE, line):
        return BadRequest(f"the graph {found[1]} is a blank node; an event's id is an IRI")
    try:
        parse_headers([_tabbed(line, "")])
    except BadRequest as error:
        return error
    return BadRequest(f"{line.strip()} stands outside of a graph and is no header of an event")


_SHOWN = 100
"""Characters of a faulty line that are printed."""


@dataclass(frozen=True)
class ImportFault:
    """A line, a statement, a row or an event that cannot be imported. `line` counts from 1; in Parquet, rows."""

    line: int
    reason: str
    column: int | None = None
    text: bytes = b""
    """The faulty part, for the file of rejects."""

    def describe(self, name: str) -> str:
        """Return the place, the reason, and an excerpt on a line of its own."""
        place = f"{name}:{self.line}" if self.column is None else f"{name}:{self.line}:{self.column}"
        return f"{place}: {self.reason}" + (f"\n    {self._excerpt()}" if self.text.strip() else "")

    def _excerpt(self) -> str:
        line = self.text.strip(b"\r\n").partition(b"\n")[0].decode(errors="replace")
        start = max(0, (self.column or 1) - _SHOWN // 2) if len(line) > _SHOWN else 0
        cut = line[start : start + _SHOWN]
        shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in cut)
        return f"{'…' if start else ''}{shown}{'…' if start + _SHOWN < len(line) else ''}"


def make_fault(error: InputError, line: int, text: bytes) -> ImportFault:
    """Return the fault for an error in a text whose first line has this number in the file."""
    reason = str(error)
    if error.place is None:
        return ImportFault(line, reason, text=text)
    # The place is printed before the reason, and the excerpt after it.
    reason = reason.partition(f", at {error.place}")[0]
    return ImportFault(line + error.place.line - 1, reason, error.place.column, text)


_AFTER_ALL = 2**53
"""A line that no file has."""

_HEAD = 256 * 1024
"""More bytes than the headers of an event take in a body: extensions of quotes alone are escaped twice, to 140 kB."""


@dataclass(frozen=True)
class BlockPosition:
    """A point from which a file can be read: the bytes, or row groups, before it; the number of its line or row; and
    the directives that hold there, such as prefixes."""

    offset: int = 0
    line: int = 1
    prologue: str = ""


@dataclass(frozen=True)
class EventPosition:
    """The beginning of an event: some runs after the start of a block, and its line. Faults before that line belong to
    earlier events."""

    block: BlockPosition
    skip: int = 0
    line: int = 0

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> EventPosition:
        return cls(BlockPosition(**value["block"]), value["skip"], value["line"])


FILE_START = EventPosition(BlockPosition())


@dataclass(frozen=True)
class FileBlock:
    """A part of a file: its start, its runs and its faults. It depends on nothing but the file and the start."""

    start: BlockPosition
    runs: list[EventRun]
    faults: list[ImportFault] = field(default_factory=list)


class FileReader(Protocol):
    """A file that is read part by part."""

    def read_blocks(self, start: BlockPosition) -> Iterator[FileBlock]:
        """Yield the blocks from there to the end. Raises InputError for a file that cannot be read at all."""

    def size(self) -> int | None:
        """Return the largest offset; None if it is known only at the end."""


@dataclass(frozen=True)
class FileEvent:
    """An event of a file, and the beginning of the next one."""

    addressed: StreamEvent
    quads: int
    after: EventPosition


def read_events(
    reader: FileReader, start: EventPosition, stream: str | None, most_quads: int = EVENT_QUADS
) -> Iterator[FileEvent | ImportFault]:
    """Yield the events from a position on, in order, with the faults between them. `stream` replaces theirs; an event
    of more than `most_quads` is a fault."""
    pending: _PendingEvent | None = None
    end = start
    for block in reader.read_blocks(start.block):
        faults = [each for each in block.faults if each.line >= start.line]
        first = start.skip if block.start == start.block else 0
        for number, run in enumerate(block.runs[first:], first):
            while faults and faults[0].line < run.line:
                yield faults.pop(0)
            if pending is not None and not run.begins_event(pending.runs[-1]):
                pending.add(run)
                continue
            if pending is not None:
                yield _assemble_event(pending, stream, EventPosition(block.start, number, run.line))
            pending = _PendingEvent([run], run.quads, most_quads)
        yield from faults
        end = EventPosition(block.start, len(block.runs), _AFTER_ALL)
    if pending is not None:
        yield _assemble_event(pending, stream, end)


@dataclass
class _PendingEvent:
    """The runs of an event of which more may come."""

    runs: list[EventRun]
    quads: int
    most_quads: int

    def add(self, run: EventRun) -> None:
        self.quads += run.quads
        # An event over the limit is refused in the end; the rest of it need not be held until then.
        if self.quads <= self.most_quads:
            self.runs.append(run)


def _assemble_event(pending: _PendingEvent, override: str | None, after: EventPosition) -> FileEvent | ImportFault:
    id, line, quads = pending.runs[0].id, pending.runs[0].line, pending.quads
    if not quads:
        return ImportFault(line, f"there are headers of {id}, but no quad of it follows")
    if quads > pending.most_quads:
        return ImportFault(line, f"the event {id} has {quads} quads, over the limit of {pending.most_quads}")
    text = "\n".join(each.text for each in pending.runs if each.text)
    if _size(text) + quads * (_size(id) + 8) > BODY_BYTES - _HEAD:
        return ImportFault(line, f"the event {id} is larger than the limit of {BODY_BYTES} bytes")
    try:
        headers = _merge_header_values(pending.runs)
    except BadRequest as error:
        return ImportFault(line, str(error))
    stream = override or headers.stream
    if stream is None:
        return ImportFault(line, f"the stream of {id} is not said; give one with --stream")
    return FileEvent(StreamEvent(stream, Event(id, text, make_headers(headers))), quads, after)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _merge_header_values(runs: list[EventRun]) -> HeaderValues:
    given: dict[str, Any] = {}
    for run in runs:
        for name, value in vars(run.headers).items():
            if value is not None and given.setdefault(name, value) != value:
                raise BadRequest(f"tw:{name} of {run.id} is said twice: {given[name]!r} and {value!r}")
    return HeaderValues(**given)
