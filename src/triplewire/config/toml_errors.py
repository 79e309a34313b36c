"""Errors in TOML files, with the line of the key. The parser of the standard library keeps no line numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from triplewire.model.errors import BadRequest, TextPosition

KeyStep = str | int
"""A key, or the number of a table in an array of tables, from 0 on."""

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")
_AT_LINE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")


def error_at_key(text: str, path: Sequence[KeyStep], message: str) -> BadRequest:
    """An error that shows the line of a key, or of the nearest thing around it that has one."""
    line = next((found for size in range(len(path), 0, -1) if (found := _line_of(text, path[:size]))), None)
    if line is None:
        return BadRequest(message)
    return _with_excerpt(text, TextPosition(line, 1), f"line {line}: {message}")


def toml_syntax_error(text: str, error: ValueError) -> BadRequest:
    """A syntax error of the TOML parser, with an excerpt at the position that it names."""
    found = _AT_LINE.search(str(error))
    if found is None:
        return BadRequest(f"this is no TOML: {error}")
    place = TextPosition(int(found[1]), int(found[2])) if found[1] else TextPosition(max(len(text.splitlines()), 1), 1)
    return _with_excerpt(text, place, f"{place}: this is no TOML: {_AT_LINE.sub('', str(error))}")


def _with_excerpt(text: str, place: TextPosition, message: str) -> BadRequest:
    line = text.splitlines()[place.line - 1] if place.line <= len(text.splitlines()) else ""
    start = place.column if place.column > 1 else len(line) - len(line.lstrip()) + 1
    return BadRequest(message, place=place, excerpt=f"{line}\n{' ' * (start - 1)}^")


def _line_of(text: str, path: Sequence[KeyStep]) -> int | None:
    return next((line for line, found in _keys(text) if found == tuple(path)), None)


def _keys(text: str) -> Iterator[tuple[int, tuple[KeyStep, ...]]]:
    """Every key that begins a line, and every header of a table, as the path that leads to it."""
    within: tuple[KeyStep, ...] = ()
    counts: dict[tuple[KeyStep, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            within = _table_path(_split_key(header[2]), header[1] == "[[", counts)
            yield number, within
        elif key := _KEY.match(line):
            yield number, (*within, *_split_key(key[1]))


def _table_path(parts: Sequence[str], array: bool, counts: dict[tuple[KeyStep, ...], int]) -> tuple[KeyStep, ...]:
    path: tuple[KeyStep, ...] = ()
    for at, part in enumerate(parts, 1):
        path = (*path, part)
        if array and at == len(parts):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _split_key(text: str) -> list[str]:
    return [part.strip("\"'") for part in _PART.findall(text)]
