"""The SPARQL lexer: text to tokens with their positions, and source spans for errors that are raised after parsing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from triplewire.model.errors import TextPosition, Unsupported

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CHAR = _BASE + "_0-9\u00b7\u0300-\u036f\u203f-\u2040-"
_PREFIX = f"(?:[{_BASE}](?:[{_CHAR}.]*[{_CHAR}])?)?"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = rf"(?:[{_BASE}_:0-9]|{_ESCAPED})(?:(?:[{_CHAR}.:]|{_ESCAPED})*(?:[{_CHAR}:]|{_ESCAPED}))?"
_EXPONENT = r"[eE][+-]?[0-9]+"

_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<space>(?:[ \t\r\n]+|#[^\r\n]*)+)",
            rf"(?P<variable>[?$][{_BASE}_0-9][{_BASE}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*)",
            r"(?P<iri><[^<>\"{}|^`\\\x00-\x20]*>)",
            r"(?P<string>\"\"\"(?:(?:\"|\"\")?(?:[^\"\\]|\\.))*\"\"\"|'''(?:(?:'|'')?(?:[^'\\]|\\.))*'''"
            r"|\"(?:[^\"\\\n\r]|\\.)*\"|'(?:[^'\\\n\r]|\\.)*')",
            rf"(?P<blank>_:[{_BASE}_0-9](?:[{_CHAR}.]*[{_CHAR}])?)",
            rf"(?P<name>{_PREFIX}:(?:{_LOCAL})?)",
            r"(?P<language>@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*(?:--[a-z]+)?)",
            rf"(?P<double>(?:[0-9]+\.[0-9]*|\.?[0-9]+){_EXPONENT})",
            r"(?P<decimal>[0-9]*\.[0-9]+)",
            r"(?P<integer>[0-9]+)",
            r"(?P<word>[A-Za-z][A-Za-z0-9_]*)",
            r"(?P<mark>\^\^|\|\||&&|!=|<=|>=|<<\(?|\)?>>|\{\||\|\}|[][(){}.;,*/+|^?!=<>~-])",
            r"(?P<bad>.)",
        )
    ),
    re.DOTALL,
)

_CODEPOINT = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)", re.DOTALL)
_KEPT = frozenset("\"'\\\n\r<>")
_SHOWN = 100


class Token(NamedTuple):
    """A terminal: its kind (a group of the pattern above, or `end`), its text and where it starts.

    `key` is the text of a mark, or a bare word in upper case, as keywords are; it is empty for all other kinds.
    """

    kind: str
    text: str
    offset: int
    key: str = ""

    @property
    def end(self) -> int:
        return self.offset + len(self.text)


class SourceText:
    """Source text without its codepoint escapes, and the mapping of its offsets to positions in the original."""

    def __init__(self, given: str) -> None:
        self._given = given
        self._starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", given))]
        self._replaced: list[int] = []
        self._shifts: list[int] = [0]
        self.text = self._plain() if "\\u" in given or "\\U" in given else given

    def tokens(self, start: int = 0) -> Iterator[Token]:
        """Yield all tokens from an offset on; the last is of the kind `end`; the kind `bad` is an invalid token."""
        for found in _TOKEN.finditer(self.text, start):
            kind = found.lastgroup or "bad"
            if kind == "word":
                yield Token(kind, found[0], found.start(), found[0].upper())
            elif kind == "mark":
                yield Token(kind, found[0], found.start(), found[0])
            elif kind != "space":
                yield Token(kind, found[0], found.start())
        yield Token("end", "", len(self.text))

    def position(self, offset: int) -> TextPosition:
        given = self._as_given(offset)
        line = bisect_right(self._starts, given)
        return TextPosition(line, given - self._starts[line - 1] + 1)

    def excerpt(self, offset: int) -> str:
        """Return the line at an offset, shortened, with a caret under it."""
        position = self.position(offset)
        start = self._starts[position.line - 1]
        line = re.split(r"[\r\n]", self._given[start : self._as_given(offset) + _SHOWN], maxsplit=1)[0]
        cut = max(0, position.column - 1 - _SHOWN // 2)
        before = re.sub(r"[^\t]", " ", line[cut : position.column - 1])
        return f"{line[cut : cut + _SHOWN]}\n{before}^".encode(errors="replace").decode()

    def _as_given(self, offset: int) -> int:
        return offset + self._shifts[bisect_right(self._replaced, offset)]

    def _plain(self) -> str:
        """Decode codepoint escapes. Escapes of characters that end a string or an IRI stay; they are decoded, or
        refused, with their token."""

        def character(found: re.Match[str]) -> str:
            code = int(found[1] or found[2] or "5C", 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000 or chr(code) in _KEPT:
                return found[0]
            self._replaced.append(found.start() - self._shifts[-1] + 1)
            self._shifts.append(self._shifts[-1] + len(found[0]) - 1)
            return chr(code)

        return _CODEPOINT.sub(character, self._given)


@dataclass(frozen=True)
class SourceSpan:
    construct: str
    position: TextPosition
    excerpt: str


def unsupported(construct: str, spans: Iterable[SourceSpan], hint: str = "") -> Unsupported:
    """Return the error for an unsupported construct, with its position if it was recorded."""
    found = next((each for each in spans if each.construct == construct), None)
    if found is None:
        return Unsupported(construct, hint=hint)
    return Unsupported(construct, place=found.position, hint=hint, excerpt=found.excerpt)
