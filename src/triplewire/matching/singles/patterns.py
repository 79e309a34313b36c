"""Patterns: regular expressions that mean the same to Python and to RE2, on text on which they cannot take long."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from triplewire.matching.singles.facts import Undecided
from triplewire.sparql.dialects.regexes import InvalidPattern, translate_regex

_LITERALS = r"[A-Za-z0-9 _\-,:;/=@#%&!~<>'\"]"
_PART = re.compile(
    rf"{_LITERALS}|\\[.\-+*?()\[\]{{}}|^$]|[.^$(|)]"
    r"|(?P<often>[*+]\??|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}\??)|(?P<once>\?\??)"
    r"|\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 _.,:;/=@])+\]"
)
_STEPS = 20_000
"""Ways to try a pattern on a text, but for what follows."""
_OPTIONAL = 6
"""Parts that may be left out, or have an alternative: each doubles the ways. With them it is some 10 ms at worst."""

Search = Callable[[str], bool]


@lru_cache(maxsize=1024)
def searching(pattern: str, flags: str) -> Search | None:
    """The test whether a text has a match; None for a pattern that is not surely known. The test is `Undecided` on
    text that is."""
    try:
        translate_regex(pattern, flags, "re2")
    except InvalidPattern:
        return None
    if flags not in ("", "i") or (degree := _degree(pattern)) is None:
        return None
    found = re.compile(_ended(pattern), re.IGNORECASE if flags else 0)

    def search(text: str) -> bool:
        if not (text.isascii() and text.isprintable()) or len(text) ** degree > _STEPS:
            raise Undecided
        return found.search(text) is not None

    return search


def _degree(pattern: str) -> int | None:
    """With texts of length n it takes about n to the power of this; None where a part is not known. What is repeated
    is one character: to repeat a group may take for ever."""
    at, often, optional = 0, 0, 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None or (pattern[at - 1 : at] == ")" and pattern[at - 2 : at - 1] != "\\" and part.lastgroup):
            return None
        often += part.lastgroup == "often"
        optional += part.lastgroup == "once" or part[0] == "|"
        at = part.end()
    if optional > _OPTIONAL:
        return None
    return often + (0 if pattern.startswith("^") and "|" not in pattern else 1)


def _ended(pattern: str) -> str:
    """With `$` as the very end, which Python also finds before a last line break."""
    return re.sub(r"(\\.|\[[^\]]*\])|\$", lambda found: found[1] or r"\Z", pattern)
