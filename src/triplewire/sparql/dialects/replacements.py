"""Replacements: what REPLACE puts in place of a match, in the engine's words."""

from __future__ import annotations

import re
from functools import lru_cache

from triplewire.sparql.dialects.regexes import Engine, InvalidPattern

_PARTS = re.compile(r"\\([\\$])|\$([0-9]+)|([^\\$]+)", re.DOTALL)


@lru_cache(maxsize=1024)
def replacement(text: str, groups: int, flags: str, engine: Engine) -> str:
    """What stands in place of a match, in the engine's words. A group that the pattern has not is empty."""
    if "q" in flags:
        return _literal(text, engine)
    made, end = [], 0
    for found in _PARTS.finditer(text):
        if found.start() != end:
            raise InvalidPattern(f"a lone \\ or $ in the replacement {text}")
        end = found.end()
        plain = found[1] or found[3]
        made.append(_literal(plain, engine) if plain else _reference(found[2], groups, engine))
    if end != len(text):
        raise InvalidPattern(f"a lone \\ or $ in the replacement {text}")
    return "".join(made)


def _literal(text: str, engine: Engine) -> str:
    text = text.replace("\\", "\\\\")
    return text if engine == "re2" else text.replace("$", "\\$")


def _reference(digits: str, groups: int, engine: Engine) -> str:
    """The longest number that is a group; what is left of the digits is text."""
    length = len(digits)
    while length > 1 and int(digits[:length]) > groups:
        length -= 1
    number, rest = int(digits[:length]), digits[length:]
    if number > groups:
        return rest
    if engine == "re2" and number > 9:
        raise InvalidPattern(f"no more than 9 groups can be put into a replacement, not {number}")
    return (f"\\{number}" if engine == "re2" else f"${number}") + rest
