"""Events of a file: assembled from runs of canonical N-Quads, with the faults between them.

A run is a stretch of lines of one event. A position in the file suffices to resume.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from triplewire.model import Event, StreamEvent
from triplewire.model.errors import BadRequest, InputError
from triplewire.model.terms import TW
from triplewire.rdf import check_id, parser
from triplewire.rdf.checks import BODY_BYTES
from triplewire.rdf.headers import NO_HEADER_VALUES, HeaderValues, make_headers, parse_headers
from triplewire.storage.registry.streams import check_stream_name

# Runs: canonical N-Quads in stretches of one event each.
#
# An event is what stands together: triples that say something of it, then quads in its graph. One regular expression
# finds a whole stretch, so that no quad is looked at by itself unless something is wrong with it.

_IRI = r"<[^<> \n]*>"
_LITERAL = r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"(?:\^\^<[^<> \n]*>|@[A-Za-z0-9-]+)?'
_HEADER = rf"<{re.escape(TW)}[a-z]+> {_LITERAL} \.\n"
_TRIPLE = r'[^ \n]+ [^ \n]+ [^" \n]+ \.\n'
"""A line outside of a graph whose object looks like one."""

_RUN = re.compile(
    rf"(?P<said>(?P<about>{_IRI}) {_HEADER}(?:(?P=about) {_HEADER})*)"
    rf"|(?P<quads>(?!{_TRIPLE})[^\n]* (?P<graph>{_IRI}) \.\n(?:(?!{_TRIPLE})[^\n]* (?P=graph) \.\n)*)"
)
_NAMELESS = re.compile(rf"(?:{_IRI}|{_LITERAL}|_:[^ \n]+|\)>>) (_:[^ \n]+) \.\n")


@dataclass(frozen=True)
class EventRun:
    """A stretch of an event: what is said of it, or some of its quads as `Event.text` has them. `line` is where it
    begins; `key`, where there is one, is the same in all runs of an event and in no other next to it."""

    id: str
    said: HeaderValues
    text: str
    line: int
    key: int | None = None

    def begins(self, before: EventRun) -> bool:
        """Does it begin another event than the run before it?"""
        if self.id != before.id:
            return True
        if self.key is not None:
            return self.key != before.key
        return self.said != NO_HEADER_VALUES and bool(before.text)


def split_runs(lines: str, line: int) -> Iterator[EventRun]:
    """The runs of canonical N-Quads, whose line in the file is taken to be `line`. Raises BadRequest for a triple
    outside of graphs that says nothing of an event, for a value that cannot be, for a graph that is no event's."""
    at = 0
    while at < len(lines):
        found = _RUN.match(lines, at)
        if found is None:
            raise _stray(lines[at : lines.index("\n", at) + 1])
        yield _header_run(found, line) if found["quads"] is None else _quad_run(found, line)
        at = found.end()


def check_stream(said: HeaderValues) -> HeaderValues:
    """Raises BadRequest for a stream that cannot be."""
    if said.stream is not None:
        check_stream_name(said.stream)
    return said


def _header_run(found: re.Match[str], line: int) -> EventRun:
    ((id, said),) = parse_headers(_tabbed(found["said"], "").split("\n")).items()
    return EventRun(check_id(id), check_stream(said), "", line)


def _quad_run(found: re.Match[str], line: int) -> EventRun:
    return EventRun(check_id(found["graph"][1:-1]), NO_HEADER_VALUES, _tabbed(found["quads"], found["graph"]), line)


def _tabbed(lines: str, graph: str) -> str:
    """Without the graph, and with tabs. Only the end of a line has a line end, and only an object has spaces."""
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


# Faults: what is wrong in a file that is brought in, and where.

_SHOWN = 100


@dataclass(frozen=True)
class ImportFault:
    """A line, a statement, a row or an event that cannot be brought in. `line` counts from 1; in Parquet, rows."""

    line: int
    reason: str
    column: int | None = None
    text: bytes = b""
    """What stands there, to be put into the file of rejects."""

    def told(self, name: str) -> str:
        """For people: where, what is wrong, and below it what stands there."""
        place = f"{name}:{self.line}" if self.column is None else f"{name}:{self.line}:{self.column}"
        return f"{place}: {self.reason}" + (f"\n    {self._excerpt()}" if self.text.strip() else "")

    def _excerpt(self) -> str:
        line = self.text.strip(b"\r\n").partition(b"\n")[0].decode(errors="replace")
        start = max(0, (self.column or 1) - _SHOWN // 2) if len(line) > _SHOWN else 0
        cut = line[start : start + _SHOWN]
        shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in cut)
        return f"{'…' if start else ''}{shown}{'…' if start + _SHOWN < len(line) else ''}"


def make_fault(error: InputError, line: int, text: bytes) -> ImportFault:
    """What an error about a text says, whose first line has this number in the file."""
    reason = str(error)
    if error.place is None:
        return ImportFault(line, reason, text=text)
    # The place is told before the reason, and what stands there after it.
    reason = reason.partition(f", at {error.place}")[0]
    return ImportFault(line + error.place.line - 1, reason, error.place.column, text)


def shift_fault(fault: ImportFault, lines: int) -> ImportFault:
    """The same some lines further up: where a text was read with something before it."""
    return replace(fault, line=fault.line - lines)


_AFTER_ALL = 2**53
"""A line that no file has."""

_HEAD = 256 * 1024
"""More than what is said of an event takes in a body: extensions of quotes alone are escaped twice, to 140 kB."""


@dataclass(frozen=True)
class BlockPosition:
    """Where a file can be read from: bytes, or row groups, before it; the number of its line or row; and what holds
    for all that follows, such as prefixes."""

    offset: int = 0
    line: int = 1
    prologue: str = ""


@dataclass(frozen=True)
class EventPosition:
    """Where an event begins: some runs after a spot, and at a line. Faults before that line belong to what was."""

    spot: BlockPosition
    skip: int = 0
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> EventPosition:
        return cls(BlockPosition(**value["spot"]), value["skip"], value["line"])


FILE_START = EventPosition(BlockPosition())


@dataclass(frozen=True)
class FileBlock:
    """A part of a file: where it begins, what was found in it, and what is wrong in it. It depends on nothing but the
    file and the spot."""

    spot: BlockPosition
    runs: list[EventRun]
    faults: list[ImportFault] = field(default_factory=list)


class FileReader(Protocol):
    """A file that is read part by part."""

    def blocks(self, spot: BlockPosition) -> Iterator[FileBlock]:
        """From a spot on to the end. Raises InputError for a file that cannot be read at all."""

    def size(self) -> int | None:
        """How far offsets go, where that is known before the end."""


@dataclass(frozen=True)
class FileEvent:
    """An event of a file, and where the next one begins."""

    addressed: StreamEvent
    quads: int
    after: EventPosition


def read_events(reader: FileReader, mark: EventPosition, stream: str | None) -> Iterator[FileEvent | ImportFault]:
    """The events from a mark on, in order, with what is wrong between them. `stream` stands in place of theirs."""
    pending: _Pending | None = None
    end = mark
    for block in reader.blocks(mark.spot):
        faults = [each for each in block.faults if each.line >= mark.line]
        first = mark.skip if block.spot == mark.spot else 0
        for number, run in enumerate(block.runs[first:], first):
            while faults and faults[0].line < run.line:
                yield faults.pop(0)
            if pending is not None and not run.begins(pending.runs[-1]):
                pending.add(run)
                continue
            if pending is not None:
                yield _assemble_event(pending, stream, EventPosition(block.spot, number, run.line))
            pending = _Pending([run], _count_quads(run))
        yield from faults
        end = EventPosition(block.spot, len(block.runs), _AFTER_ALL)
    if pending is not None:
        yield _assemble_event(pending, stream, end)


@dataclass
class _Pending:
    """The runs of an event of which more may come."""

    runs: list[EventRun]
    quads: int

    def add(self, run: EventRun) -> None:
        self.quads += _count_quads(run)
        # An event over the limit is refused in the end; what is too much of it need not be kept until then.
        if self.quads <= parser.EVENT_QUADS:
            self.runs.append(run)


def _count_quads(run: EventRun) -> int:
    return run.text.count("\n") + 1 if run.text else 0


def _assemble_event(pending: _Pending, override: str | None, after: EventPosition) -> FileEvent | ImportFault:
    id, line, quads = pending.runs[0].id, pending.runs[0].line, pending.quads
    if not quads:
        return ImportFault(line, f"something is said of {id}, but no quad of it follows")
    if quads > parser.EVENT_QUADS:
        return ImportFault(line, f"the event {id} has {quads} quads, over the limit of {parser.EVENT_QUADS}")
    text = "\n".join(each.text for each in pending.runs if each.text)
    if _size(text) + quads * (_size(id) + 8) > BODY_BYTES - _HEAD:
        return ImportFault(line, f"the event {id} is larger than the limit of {BODY_BYTES} bytes")
    try:
        said = _merge_header_values(pending.runs)
    except BadRequest as error:
        return ImportFault(line, str(error))
    stream = override or said.stream
    if stream is None:
        return ImportFault(line, f"the stream of {id} is not said; give one with --stream")
    return FileEvent(StreamEvent(stream, Event(id, text, make_headers(said))), quads, after)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _merge_header_values(runs: list[EventRun]) -> HeaderValues:
    given: dict[str, Any] = {}
    for run in runs:
        for name, value in vars(run.said).items():
            if value is not None and given.setdefault(name, value) != value:
                raise BadRequest(f"tw:{name} of {run.id} is said twice: {given[name]!r} and {value!r}")
    return HeaderValues(**given)
