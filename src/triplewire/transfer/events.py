"""Events: put together again from the runs of a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from triplewire.codec.headers import Said, headers_of
from triplewire.config import limits
from triplewire.model import Event, StreamEvent
from triplewire.model.errors import BadRequest
from triplewire.transfer.faults import Fault
from triplewire.transfer.runs import Run

_AFTER_ALL = 2**53
"""A line that no file has."""

_HEAD = 256 * 1024
"""More than what is said of an event takes in a body: extensions of quotes alone are escaped twice, to 140 kB."""


@dataclass(frozen=True)
class Spot:
    """Where a file can be read from: bytes, or row groups, before it; the number of its line or row; and what holds
    for all that follows, such as prefixes."""

    offset: int = 0
    line: int = 1
    prologue: str = ""


@dataclass(frozen=True)
class Mark:
    """Where an event begins: some runs after a spot, and at a line. Faults before that line belong to what was."""

    spot: Spot
    skip: int = 0
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Mark:
        return cls(Spot(**value["spot"]), value["skip"], value["line"])


BEGINNING = Mark(Spot())


@dataclass(frozen=True)
class Block:
    """A part of a file: where it begins, what was found in it, and what is wrong in it. It depends on nothing but the
    file and the spot."""

    spot: Spot
    runs: list[Run]
    faults: list[Fault] = field(default_factory=list)


class Reader(Protocol):
    """A file that is read part by part."""

    def blocks(self, spot: Spot) -> Iterator[Block]:
        """From a spot on to the end. Raises InputError for a file that cannot be read at all."""

    def size(self) -> int | None:
        """How far offsets go, where that is known before the end."""


@dataclass(frozen=True)
class Found:
    """An event of a file, and where the next one begins."""

    addressed: StreamEvent
    quads: int
    after: Mark


def events(reader: Reader, mark: Mark, stream: str | None) -> Iterator[Found | Fault]:
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
                yield _whole(pending, stream, Mark(block.spot, number, run.line))
            pending = _Pending([run], _quads(run))
        yield from faults
        end = Mark(block.spot, len(block.runs), _AFTER_ALL)
    if pending is not None:
        yield _whole(pending, stream, end)


@dataclass
class _Pending:
    """The runs of an event of which more may come."""

    runs: list[Run]
    quads: int

    def add(self, run: Run) -> None:
        self.quads += _quads(run)
        # An event over the limit is refused in the end; what is too much of it need not be kept until then.
        if self.quads <= limits.EVENT_QUADS:
            self.runs.append(run)


def _quads(run: Run) -> int:
    return run.text.count("\n") + 1 if run.text else 0


def _whole(pending: _Pending, override: str | None, after: Mark) -> Found | Fault:
    id, line, quads = pending.runs[0].id, pending.runs[0].line, pending.quads
    if not quads:
        return Fault(line, f"something is said of {id}, but no quad of it follows")
    if quads > limits.EVENT_QUADS:
        return Fault(line, f"the event {id} has {quads} quads, over the limit of {limits.EVENT_QUADS}")
    text = "\n".join(each.text for each in pending.runs if each.text)
    if _size(text) + quads * (_size(id) + 8) > limits.BODY_BYTES - _HEAD:
        return Fault(line, f"the event {id} is larger than the limit of {limits.BODY_BYTES} bytes")
    try:
        said = _said(pending.runs)
    except BadRequest as error:
        return Fault(line, str(error))
    stream = override or said.stream
    if stream is None:
        return Fault(line, f"the stream of {id} is not said; give one with --stream")
    return Found(StreamEvent(stream, Event(id, text, headers_of(said))), quads, after)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _said(runs: list[Run]) -> Said:
    given: dict[str, Any] = {}
    for run in runs:
        for name, value in vars(run.said).items():
            if value is not None and given.setdefault(name, value) != value:
                raise BadRequest(f"tw:{name} of {run.id} is said twice: {given[name]!r} and {value!r}")
    return Said(**given)
