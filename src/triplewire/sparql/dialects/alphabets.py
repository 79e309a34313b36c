"""Alphabets: the sets of characters that patterns of XPath name, as both engines' patterns write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]

_KINDS = {"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "Z": "slp", "S": "mcko", "C": "cfo"}
CATEGORIES = frozenset(group + kind for group, kinds in _KINDS.items() for kind in ("", *kinds))
"""The general categories of Unicode that both engines know."""

BLOCKS: Mapping[str, Range] = {
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

INSIDE: Mapping[str, str] = {
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

OUTSIDE: Mapping[str, str] = {
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


def without(given: Range, low: int, high: int) -> Iterable[Range]:
    """What is left of a range when another is taken out."""
    start, end = given
    if start < low:
        yield start, min(end, low - 1)
    if end > high:
        yield max(start, high + 1), end


def written(ranges: Iterable[Range], kinds: Iterable[str] = (), *, negated: bool = False) -> str:
    """A class of characters: of ranges, and of named classes as they are written inside."""
    parts = [_point(low) if low == high else f"{_point(low)}-{_point(high)}" for low, high in ranges]
    return f"[{'^' if negated else ''}{''.join((*parts, *kinds))}]"


def _point(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"
