"""Runs: canonical N-Quads in stretches of one event each.

An event is what stands together: triples that say something of it, then quads in its graph. One regular expression
finds a whole stretch, so that no quad is looked at by itself unless something is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from triplewire.codec import check_id
from triplewire.codec.headers import NOTHING, Said, parse_headers
from triplewire.model.errors import BadRequest
from triplewire.model.terms import TW
from triplewire.storage.registry.streams import check_stream_name

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
class Run:
    """A stretch of an event: what is said of it, or some of its quads as `Event.text` has them. `line` is where it
    begins; `key`, where there is one, is the same in all runs of an event and in no other next to it."""

    id: str
    said: Said
    text: str
    line: int
    key: int | None = None

    def begins(self, before: Run) -> bool:
        """Does it begin another event than the run before it?"""
        if self.id != before.id:
            return True
        if self.key is not None:
            return self.key != before.key
        return self.said != NOTHING and bool(before.text)


def runs(lines: str, line: int) -> Iterator[Run]:
    """The runs of canonical N-Quads, whose line in the file is taken to be `line`. Raises BadRequest for a triple
    outside of graphs that says nothing of an event, for a value that cannot be, for a graph that is no event's."""
    at = 0
    while at < len(lines):
        found = _RUN.match(lines, at)
        if found is None:
            raise _stray(lines[at : lines.index("\n", at) + 1])
        yield _said(found, line) if found["quads"] is None else _quads(found, line)
        at = found.end()


def checked(said: Said) -> Said:
    """Raises BadRequest for a stream that cannot be."""
    if said.stream is not None:
        check_stream_name(said.stream)
    return said


def _said(found: re.Match[str], line: int) -> Run:
    ((id, said),) = parse_headers(_tabbed(found["said"], "").split("\n")).items()
    return Run(check_id(id), checked(said), "", line)


def _quads(found: re.Match[str], line: int) -> Run:
    return Run(check_id(found["graph"][1:-1]), NOTHING, _tabbed(found["quads"], found["graph"]), line)


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
