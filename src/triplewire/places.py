"""Places: where in the text of a TOML file a key stands. The parser of the standard library keeps no lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from triplewire.model.errors import BadRequest, TextPosition

Step = str | int
"""A key, or the number of a table in an array of tables, from 0 on."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_AT_LINE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")


def fault(text: str, path: Sequence[Step], message: str) -> BadRequest:
    """An error that shows the line of a key, or of the nearest thing around it that has one."""
    line = next((found for size in range(len(path), 0, -1) if (found := _line(text, path[:size]))), None)
    if line is None:
        return BadRequest(message)
    return _shown(text, TextPosition(line, 1), f"line {line}: {message}")


def unparsed(text: str, error: ValueError) -> BadRequest:
    """What the parser of TOML has to say, with the place that it names."""
    found = _AT_LINE.search(str(error))
    if found is None:
        return BadRequest(f"this is no TOML: {error}")
    place = TextPosition(int(found[1]), int(found[2])) if found[1] else TextPosition(max(len(text.splitlines()), 1), 1)
    return _shown(text, place, f"{place}: this is no TOML: {_AT_LINE.sub('', str(error))}")


def _shown(text: str, place: TextPosition, message: str) -> BadRequest:
    line = text.splitlines()[place.line - 1] if place.line <= len(text.splitlines()) else ""
    start = place.column if place.column > 1 else len(line) - len(line.lstrip()) + 1
    return BadRequest(message, place=place, excerpt=f"{line}\n{' ' * (start - 1)}^")


def _line(text: str, path: Sequence[Step]) -> int | None:
    return next((line for line, found in _keys(text) if found == tuple(path)), None)


def _keys(text: str) -> Iterator[tuple[int, tuple[Step, ...]]]:
    """Every key that begins a line, and every header of a table, as the path that leads to it."""
    within: tuple[Step, ...] = ()
    counts: dict[tuple[Step, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            within = _table(_parts(header[2]), header[1] == "[[", counts)
            yield number, within
        elif key := _KEY.match(line):
            yield number, (*within, *_parts(key[1]))


def _table(parts: Sequence[str], array: bool, counts: dict[tuple[Step, ...], int]) -> tuple[Step, ...]:
    path: tuple[Step, ...] = ()
    for at, part in enumerate(parts, 1):
        path = (*path, part)
        if array and at == len(parts):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _parts(text: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(text)]
