"""Regexes: the patterns of XPath, which SPARQL uses, in the words of RE2 (DuckDB) and of Java (Spark).

Both engines read most of them alike. What they do not: names (`\\i`, `\\c`), Unicode digits and words, classes with
a part taken out (`[a-z-[aeiou]]`), where `$` matches, and the flags `x` and `q`. What XPath does not have (look-around,
possessive repetition, flags inside) is no pattern here, so that one engine does not take what the other refuses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from triplewire.sparql.dialects.alphabets import BLOCKS, CATEGORIES, ESCAPES, INSIDE, OUTSIDE, Range, without, written

Engine: TypeAlias = Literal["re2", "java"]

_FLAGS = frozenset("imsxq")
_SPECIAL = frozenset(".^$*+?()[]{}|\\")
_SPACE = " \t\n\r"
_COUNT = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}")


class InvalidPattern(ValueError):
    """Not a pattern of XPath, or one that the engine cannot run."""


@dataclass(frozen=True)
class Regex:
    """A pattern as the engine takes it, and how many groups it has."""

    text: str
    groups: int


@lru_cache(maxsize=1024)
def translated(pattern: str, flags: str, engine: Engine) -> Regex:
    """Raises InvalidPattern."""
    if not set(flags) <= _FLAGS:
        raise InvalidPattern(f"flags are {', '.join(sorted(_FLAGS))}, not {flags}")
    body = Regex(escaped(pattern), 0) if "q" in flags else _Reader(pattern, flags, engine).read()
    letters = "".join(flag for flag in "ims" if flag in flags and (flag == "i" or "q" not in flags))
    if engine == "java":
        letters += "ud" if "i" in letters else "d"
    return Regex(f"(?{letters}){body.text}" if letters else body.text, body.groups)


def escaped(text: str) -> str:
    """A pattern for exactly this text."""
    return "".join(f"\\{each}" if each in _SPECIAL else each for each in text)


class _Reader:
    """Reads a pattern from left to right and writes it anew."""

    def __init__(self, pattern: str, flags: str, engine: Engine) -> None:
        self.pattern = pattern
        self.flags = flags
        self.engine = engine
        self.at = 0
        self.groups = 0
        self.open: list[int] = []
        self.closed: set[int] = set()
        self.repeatable = False

    def read(self) -> Regex:
        out = []
        while self.at < len(self.pattern):
            out.append(self._next())
        if self.open:
            raise InvalidPattern("a group that is not closed")
        return Regex("".join(out), self.groups)

    def _next(self) -> str:
        char = self.pattern[self.at]
        if char in "*+?{":
            return self._repetition()
        if char in "(|)":
            return self._structure(char)
        self.at += 1
        if char in _SPACE and "x" in self.flags:
            return ""
        self.repeatable = char not in "^$"
        match char:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "]" | "}":
                raise InvalidPattern(f"{char} stands alone")
            case "$":
                return "$" if "m" in self.flags or self.engine == "re2" else "\\z"
            case "^" | ".":
                return char
        return escaped(char)

    def _repetition(self) -> str:
        if not self.repeatable:
            raise InvalidPattern("nothing to repeat")
        self.repeatable = False
        found = _COUNT.match(self.pattern, self.at) if self.pattern[self.at] == "{" else None
        if self.pattern[self.at] == "{" and (found is None or (found[2] and int(found[2]) < int(found[1]))):
            raise InvalidPattern("a count that is none")
        taken = found[0] if found else self.pattern[self.at]
        self.at += len(taken)
        if self.pattern[self.at : self.at + 1] == "?":
            self.at += 1
            return taken + "?"
        return taken

    def _structure(self, char: str) -> str:
        self.at += 1
        self.repeatable = char == ")"
        if char == "|":
            return char
        if char == ")":
            if not self.open:
                raise InvalidPattern("a group that is not open")
            self.closed.add(self.open.pop())
            return char
        if self.pattern.startswith("?:", self.at):
            self.at += 2
            self.open.append(0)
            return "(?:"
        if self.pattern.startswith("?", self.at):
            raise InvalidPattern("a group of a kind that XPath has not")
        self.groups += 1
        self.open.append(self.groups)
        return "("

    def _escape(self) -> str:
        """An escape outside of a class; the backslash is taken."""
        char = self._take()
        if char in "bB":
            self.repeatable = False
            return f"\\{char}"
        if char in OUTSIDE:
            return OUTSIDE[char]
        if char in "pP":
            return self._property(char)
        if char in "123456789":
            return self._back_reference(char)
        return escaped(self._single(char))

    def _back_reference(self, digit: str) -> str:
        if self.engine == "re2":
            raise InvalidPattern("a back-reference")
        if int(digit) not in self.closed:
            raise InvalidPattern(f"\\{digit} refers to no group before it")
        return f"(?:\\{digit})"

    def _property(self, kind: str) -> str:
        found = re.compile(r"\{([A-Za-z0-9-]+)\}").match(self.pattern, self.at)
        if found is None:
            raise InvalidPattern(f"\\{kind} without a name")
        self.at = found.end()
        if found[1] in CATEGORIES:
            return f"\\{kind}{{{found[1]}}}"
        if found[1] not in BLOCKS:
            raise InvalidPattern(f"no characters are called {found[1]}")
        return written([BLOCKS[found[1]]], negated=kind == "P")

    def _single(self, char: str) -> str:
        """The character that an escape stands for."""
        if char in ESCAPES:
            return ESCAPES[char]
        if char.isascii() and not char.isalnum() and char > " ":
            return char
        raise InvalidPattern(f"\\{char} means nothing")

    def _take(self) -> str:
        if self.at >= len(self.pattern):
            raise InvalidPattern("the end comes too soon")
        self.at += 1
        return self.pattern[self.at - 1]

    def _class(self) -> str:
        """A class; its opening bracket is taken."""
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        ranges: list[Range] = []
        kinds: list[str] = []
        first = True
        while (char := self._take()) != "]":
            if char == "-" and self.pattern.startswith("[", self.at) and not first:
                return self._difference(ranges, kinds, negated)
            if char == "[":
                raise InvalidPattern("[ inside of a class")
            self._member(char, ranges, kinds)
            first = False
        if first:
            raise InvalidPattern("an empty class")
        return written(ranges, kinds, negated=negated)

    def _member(self, char: str, ranges: list[Range], kinds: list[str]) -> None:
        if char == "\\":
            char = self._take()
            if char in INSIDE:
                kinds.append(INSIDE[char])
                return
            if char in "pP":
                kinds.append(self._inner_property(char))
                return
            char = self._single(char)
        last = char
        if self.pattern.startswith("-", self.at) and self.pattern[self.at + 1 : self.at + 2] not in ("]", "[", ""):
            self.at += 1
            last = self._take()
            last = self._single(self._take()) if last == "\\" else last
        if last < char:
            raise InvalidPattern(f"the range {char}-{last} is empty")
        ranges.append((ord(char), ord(last)))

    def _inner_property(self, kind: str) -> str:
        made = self._property(kind)
        if made.startswith("["):
            if kind == "P":
                raise InvalidPattern(f"the opposite of {made} inside of a class")
            return made[1:-1]
        return made

    def _difference(self, ranges: list[Range], kinds: list[str], negated: bool) -> str:
        """A class with another taken out; the hyphen before the inner bracket is taken."""
        self.at += 1
        base = written(ranges, kinds, negated=negated)
        start = self.at
        inner = self._class()
        if self._take() != "]":
            raise InvalidPattern("a class that is taken out must come last")
        if self.engine == "java":
            return f"(?:(?!{inner}){base})"
        if negated and not inner.startswith("[^"):
            return f"{base[:-1]}{inner[1:]}"
        return written(_subtracted(ranges, kinds, self.pattern[start : self.at - 1]))


def _subtracted(ranges: list[Range], kinds: list[str], inner: str) -> list[Range]:
    """RE2 cannot take a class out of another, but ranges of characters can be computed."""
    taken: list[Range] = []
    named: list[str] = []
    reader = _Reader(inner, "", "re2")
    if inner.startswith("^"):
        raise InvalidPattern("a class whose opposite is taken out")
    while (char := reader._take()) != "]":
        reader._member(char, taken, named)
    if kinds or named:
        raise InvalidPattern("a difference of named classes")
    rest = ranges
    for low, high in taken:
        rest = [part for each in rest for part in without(each, low, high)]
    if not rest:
        raise InvalidPattern("an empty class")
    return rest
