"""XPath regular expressions, which SPARQL uses, translated for RE2 (DuckDB) and Java (Spark), with the replacement
strings of REPLACE.

The engines differ in names (`\\i`, `\\c`), Unicode digits and words, class subtraction (`[a-z-[aeiou]]`), where `$`
matches, and the flags `x` and `q`. Constructs that XPath lacks (look-around, possessive repetition, inline flags) are
refused, so that one engine does not take what the other refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

CodeRange: TypeAlias = tuple[int, int]

_KINDS = {"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "Z": "slp", "S": "mcko", "C": "cfo"}
CATEGORIES = frozenset(group + kind for group, kinds in _KINDS.items() for kind in ("", *kinds))
"""The general categories of Unicode that both engines know."""

BLOCKS: Mapping[str, CodeRange] = {
    "IsBasicLatin": (0x0000, 0x007F),
    "IsLatin-1Supplement": (0x0080, 0x00FF),
    "IsLatinExtended-A": (0x0100, 0x017F),
    "IsLatinExtended-B": (0x0180, 0x024F),
    "IsIPAExtensions": (0x0250, 0x02AF),
    "IsSpacingModifierLetters": (0x02B0, 0x02FF),
    "IsCombiningDiacriticalMarks": (0x0300, 0x036F),
    "IsGreek": (0x0370, 0x03FF),
    "IsGreekandCoptic": (0x0370, 0x03FF),
    "IsCyrillic": (0x0400, 0x04FF),
    "IsArmenian": (0x0530, 0x058F),
    "IsHebrew": (0x0590, 0x05FF),
    "IsArabic": (0x0600, 0x06FF),
    "IsDevanagari": (0x0900, 0x097F),
    "IsThai": (0x0E00, 0x0E7F),
    "IsLatinExtendedAdditional": (0x1E00, 0x1EFF),
    "IsGreekExtended": (0x1F00, 0x1FFF),
    "IsGeneralPunctuation": (0x2000, 0x206F),
    "IsCurrencySymbols": (0x20A0, 0x20CF),
    "IsArrows": (0x2190, 0x21FF),
    "IsMathematicalOperators": (0x2200, 0x22FF),
    "IsHiragana": (0x3040, 0x309F),
    "IsKatakana": (0x30A0, 0x30FF),
    "IsCJKUnifiedIdeographs": (0x4E00, 0x9FFF),
    "IsHangulSyllables": (0xAC00, 0xD7AF),
}
"""The blocks of Unicode that are asked for most; RE2 has no names for them."""

_LETTERS = (
    r":_A-Za-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}"
    r"\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}"
)
_NAMES = _LETTERS + r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}"
_WORDS = r"\p{L}\p{M}\p{N}\p{S}"
_BLANKS = r" \t\n\r"

CLASSES_INSIDE: Mapping[str, str] = {
    "s": _BLANKS,
    "S": r"\x{0}-\x{8}\x{B}-\x{C}\x{E}-\x{1F}\x{21}-\x{10FFFF}",
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": _WORDS,
    "W": r"\p{P}\p{Z}\p{C}",
    "i": _LETTERS,
    "c": _NAMES,
}
"""Named classes as they are written between brackets."""

CLASSES_OUTSIDE: Mapping[str, str] = {
    "s": f"[{_BLANKS}]",
    "S": f"[^{_BLANKS}]",
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": f"[{_WORDS}]",
    "W": f"[^{_WORDS}]",
    "i": f"[{_LETTERS}]",
    "I": f"[^{_LETTERS}]",
    "c": f"[{_NAMES}]",
    "C": f"[^{_NAMES}]",
}
"""Named classes by themselves."""

ESCAPES: Mapping[str, str] = {"n": "\n", "r": "\r", "t": "\t"}


def subtract_range(given: CodeRange, low: int, high: int) -> Iterable[CodeRange]:
    start, end = given
    if start < low:
        yield start, min(end, low - 1)
    if end > high:
        yield max(start, high + 1), end


def write_class(ranges: Iterable[CodeRange], kinds: Iterable[str] = (), *, negated: bool = False) -> str:
    """Write a character class of ranges, and of named classes as they are written inside brackets."""
    parts = [_point(low) if low == high else f"{_point(low)}-{_point(high)}" for low, high in ranges]
    return f"[{'^' if negated else ''}{''.join((*parts, *kinds))}]"


def _point(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"


RegexEngine: TypeAlias = Literal["re2", "java"]

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
def translate_regex(pattern: str, flags: str, engine: RegexEngine) -> Regex:
    """Raises InvalidPattern."""
    if not set(flags) <= _FLAGS:
        raise InvalidPattern(f"flags are {', '.join(sorted(_FLAGS))}, not {flags}")
    body = Regex(escape_regex(pattern), 0) if "q" in flags else _RegexReader(pattern, flags, engine).read()
    letters = "".join(flag for flag in "ims" if flag in flags and (flag == "i" or "q" not in flags))
    if engine == "java":
        letters += "ud" if "i" in letters else "d"
    return Regex(f"(?{letters}){body.text}" if letters else body.text, body.groups)


def escape_regex(text: str) -> str:
    """A pattern for exactly this text."""
    return "".join(f"\\{each}" if each in _SPECIAL else each for each in text)


class _RegexReader:
    """A translator that reads a pattern from left to right and writes it anew."""

    def __init__(self, pattern: str, flags: str, engine: RegexEngine) -> None:
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
            raise InvalidPattern("unclosed group")
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
                raise InvalidPattern(f"unmatched {char}")
            case "$":
                return "$" if "m" in self.flags or self.engine == "re2" else "\\z"
            case "^" | ".":
                return char
        return escape_regex(char)

    def _repetition(self) -> str:
        if not self.repeatable:
            raise InvalidPattern("nothing to repeat")
        self.repeatable = False
        found = _COUNT.match(self.pattern, self.at) if self.pattern[self.at] == "{" else None
        if self.pattern[self.at] == "{" and (found is None or (found[2] and int(found[2]) < int(found[1]))):
            raise InvalidPattern("invalid repetition count")
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
                raise InvalidPattern("unmatched )")
            self.closed.add(self.open.pop())
            return char
        if self.pattern.startswith("?:", self.at):
            self.at += 2
            self.open.append(0)
            return "(?:"
        if self.pattern.startswith("?", self.at):
            raise InvalidPattern("XPath has no groups of the form (?…) but (?:…)")
        self.groups += 1
        self.open.append(self.groups)
        return "("

    def _escape(self) -> str:
        """An escape outside of a class; the backslash is taken."""
        char = self._take()
        if char in "bB":
            self.repeatable = False
            return f"\\{char}"
        if char in CLASSES_OUTSIDE:
            return CLASSES_OUTSIDE[char]
        if char in "pP":
            return self._property(char)
        if char in "123456789":
            return self._back_reference(char)
        return escape_regex(self._single(char))

    def _back_reference(self, digit: str) -> str:
        if self.engine == "re2":
            raise InvalidPattern("RE2 has no back-references")
        if int(digit) not in self.closed:
            raise InvalidPattern(f"\\{digit} refers to no group before it")
        return f"(?:\\{digit})"

    def _property(self, kind: str) -> str:
        found = re.compile(r"\{([A-Za-z0-9-]+)\}").match(self.pattern, self.at)
        if found is None:
            raise InvalidPattern(f"\\{kind} without a category or block in braces")
        self.at = found.end()
        if found[1] in CATEGORIES:
            return f"\\{kind}{{{found[1]}}}"
        if found[1] not in BLOCKS:
            raise InvalidPattern(f"unknown category or block {found[1]}")
        return write_class([BLOCKS[found[1]]], negated=kind == "P")

    def _single(self, char: str) -> str:
        """The character that an escape stands for."""
        if char in ESCAPES:
            return ESCAPES[char]
        if char.isascii() and not char.isalnum() and char > " ":
            return char
        raise InvalidPattern(f"\\{char} is not an escape")

    def _take(self) -> str:
        if self.at >= len(self.pattern):
            raise InvalidPattern("unexpected end of the pattern")
        self.at += 1
        return self.pattern[self.at - 1]

    def _class(self) -> str:
        """A class; its opening bracket is taken."""
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        ranges: list[CodeRange] = []
        kinds: list[str] = []
        first = True
        while (char := self._take()) != "]":
            if char == "-" and self.pattern.startswith("[", self.at) and not first:
                return self._difference(ranges, kinds, negated)
            if char == "[":
                raise InvalidPattern("unescaped [ inside a character class")
            self._member(char, ranges, kinds)
            first = False
        if first:
            raise InvalidPattern("empty character class")
        return write_class(ranges, kinds, negated=negated)

    def _member(self, char: str, ranges: list[CodeRange], kinds: list[str]) -> None:
        if char == "\\":
            char = self._take()
            if char in CLASSES_INSIDE:
                kinds.append(CLASSES_INSIDE[char])
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
                raise InvalidPattern(f"negated {made} inside a character class is not supported")
            return made[1:-1]
        return made

    def _difference(self, ranges: list[CodeRange], kinds: list[str], negated: bool) -> str:
        """A class with another taken out; the hyphen before the inner bracket is taken."""
        self.at += 1
        base = write_class(ranges, kinds, negated=negated)
        start = self.at
        inner = self._class()
        if self._take() != "]":
            raise InvalidPattern("class subtraction must come last")
        if self.engine == "java":
            return f"(?:(?!{inner}){base})"
        if negated and not inner.startswith("[^"):
            return f"{base[:-1]}{inner[1:]}"
        return write_class(_subtract_class(ranges, kinds, self.pattern[start : self.at - 1]))


def _subtract_class(ranges: list[CodeRange], kinds: list[str], inner: str) -> list[CodeRange]:
    """RE2 cannot take a class out of another, but ranges of characters can be computed."""
    taken: list[CodeRange] = []
    named: list[str] = []
    reader = _RegexReader(inner, "", "re2")
    if inner.startswith("^"):
        raise InvalidPattern("subtraction of a negated class is not supported")
    while (char := reader._take()) != "]":
        reader._member(char, taken, named)
    if kinds or named:
        raise InvalidPattern("subtraction of named classes is not supported")
    rest = ranges
    for low, high in taken:
        rest = [part for each in rest for part in subtract_range(each, low, high)]
    if not rest:
        raise InvalidPattern("empty character class")
    return rest


_PARTS = re.compile(r"\\([\\$])|\$([0-9]+)|([^\\$]+)", re.DOTALL)


@lru_cache(maxsize=1024)
def translate_replacement(text: str, groups: int, flags: str, engine: RegexEngine) -> str:
    """Translate a replacement string for the engine. A group that the pattern does not have is empty."""
    if "q" in flags:
        return _literal_replacement(text, engine)
    made, end = [], 0
    for found in _PARTS.finditer(text):
        if found.start() != end:
            raise InvalidPattern(f"unescaped \\ or $ in the replacement {text}")
        end = found.end()
        plain = found[1] or found[3]
        made.append(_literal_replacement(plain, engine) if plain else _group_reference(found[2], groups, engine))
    if end != len(text):
        raise InvalidPattern(f"unescaped \\ or $ in the replacement {text}")
    return "".join(made)


def _literal_replacement(text: str, engine: RegexEngine) -> str:
    text = text.replace("\\", "\\\\")
    return text if engine == "re2" else text.replace("$", "\\$")


def _group_reference(digits: str, groups: int, engine: RegexEngine) -> str:
    """The longest number that is a group; what is left of the digits is text."""
    length = len(digits)
    while length > 1 and int(digits[:length]) > groups:
        length -= 1
    number, rest = int(digits[:length]), digits[length:]
    if number > groups:
        return rest
    if engine == "re2" and number > 9:
        raise InvalidPattern(f"a replacement can name 9 groups at most, not group {number}")
    return (f"\\{number}" if engine == "re2" else f"${number}") + rest
