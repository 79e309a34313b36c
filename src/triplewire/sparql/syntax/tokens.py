"""Tokens: SPARQL text cut into the terminals of its grammar, each with its place."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from triplewire.errors import Place, SparqlSyntax

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
            r"(?P<iri><[^<>\"{}|^`\x00-\x20]*>)",
            r"(?P<string>\"\"\"(?:(?:\"|\"\")?(?:[^\"\\]|\\.))*\"\"\"|'''(?:(?:'|'')?(?:[^'\\]|\\.))*'''"
            r"|\"(?:[^\"\\\n\r]|\\.)*\"|'(?:[^'\\\n\r]|\\.)*')",
            rf"(?P<variable>[?$][{_BASE}_0-9][{_BASE}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*)",
            rf"(?P<blank>_:[{_BASE}_0-9](?:[{_CHAR}.]*[{_CHAR}])?)",
            rf"(?P<name>{_PREFIX}:(?:{_LOCAL})?)",
            r"(?P<language>@[a-zA-Z]+(?:-[a-zA-Z0-9]+)*)",
            rf"(?P<double>(?:[0-9]+\.[0-9]*|\.?[0-9]+){_EXPONENT})",
            r"(?P<decimal>[0-9]*\.[0-9]+)",
            r"(?P<integer>[0-9]+)",
            r"(?P<word>[A-Za-z][A-Za-z0-9_]*)",
            r"(?P<mark>\^\^|\|\||&&|!=|<=|>=|<<\(?|\)?>>|\{\||\|\}|[][(){}.;,*/+|^?!=<>~-])",
        )
    ),
    re.DOTALL,
)


@dataclass(frozen=True)
class Token:
    """A terminal: its kind (a group of the pattern above, or `end`), its text and where it starts."""

    kind: str
    text: str
    offset: int

    @property
    def word(self) -> str:
        """The text in upper case if this is a bare word, as keywords are; else empty."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def end(self) -> int:
        return self.offset + len(self.text)


class Source:
    """A text with its tokens, the last of which is of the kind `end`, and the way from offsets to places."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]
        self.tokens = self._cut(text)

    def place(self, offset: int) -> Place:
        line = bisect_right(self._starts, offset)
        return Place(line, offset - self._starts[line - 1] + 1)

    def _cut(self, text: str) -> list[Token]:
        if lone := re.search("[\ud800-\udfff]", text):
            raise SparqlSyntax("half of a surrogate pair is no character", place=self.place(lone.start()))
        tokens = []
        offset = 0
        while offset < len(text):
            found = _TOKEN.match(text, offset)
            if not found:
                raise SparqlSyntax(
                    f"{text[offset]!r} at {self.place(offset)} begins no SPARQL token", place=self.place(offset)
                )
            if found.lastgroup and found.lastgroup != "space":
                tokens.append(Token(found.lastgroup, found[0], offset))
            offset = found.end()
        return [*tokens, Token("end", "", len(text))]
