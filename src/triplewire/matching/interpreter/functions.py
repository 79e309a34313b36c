"""SPARQL functions of strings, dates, casts and regular expressions.

None is a SPARQL error. Where characters are counted or changed only ASCII is decided; a regular expression is taken
only if it means the same to Python and to RE2 and cannot take long on the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache

from triplewire.matching.interpreter import arithmetic, values
from triplewire.matching.interpreter.values import TermValue, Undecided
from triplewire.model.terms import XSD
from triplewire.sparql.algebra import Family
from triplewire.sparql.dialects.regexes import InvalidPattern, translate_regex

_STRINGS = frozenset({Family.STRING, Family.TAGGED})
TaggedString = tuple[str, str | None]


def string_and_tag(given: TermValue | None) -> TaggedString | None:
    """The text and the language tag of a string; None for anything else."""
    if given is None or given.family not in _STRINGS:
        if given is not None and given.family is None and not (given.text or "").endswith(">"):
            raise Undecided
        return None
    return values.lexical_form(given), given.tag


def plain_string(given: TermValue | None) -> str | None:
    """The text of a string without a tag."""
    found = string_and_tag(given)
    return found[0] if found is not None and found[1] is None else None


def str_value(given: TermValue | None) -> TermValue | None:
    if given is None or given.family is Family.BLANK:
        return None
    return values.string_value(values.lexical_form(given))


def lang(given: TermValue | None) -> TermValue | None:
    if given is None or given.family in (Family.IRI, Family.BLANK):
        return None
    if given.family is None and given.datatype is None:
        raise Undecided
    return values.string_value(given.tag or "")


def datatype(given: TermValue | None) -> TermValue | None:
    if given is None or given.family in (Family.IRI, Family.BLANK):
        return None
    if given.datatype is None:
        raise Undecided
    return TermValue(Family.IRI, f"<{given.datatype}>", given.datatype)


def test_strings(test: Callable[[str, str], bool], left: TermValue | None, right: TermValue | None) -> bool | None:
    """A test of two strings with compatible tags."""
    one, other = string_and_tag(left), string_and_tag(right)
    if one is None or other is None or (other[1] is not None and one[1] != other[1]):
        return None
    return test(one[0], other[0])


def str_before(given: TermValue | None, part: TermValue | None) -> TermValue | None:
    return _split_string(given, part, lambda text, found: text.partition(found)[0] if found else "")


def str_after(given: TermValue | None, part: TermValue | None) -> TermValue | None:
    return _split_string(given, part, lambda text, found: text.partition(found)[2] if found else text)


def _split_string(given: TermValue | None, part: TermValue | None, cut: Callable[[str, str], str]) -> TermValue | None:
    """STRBEFORE and STRAFTER: with the tag if the separator occurs, else the empty string without it."""
    one, other = string_and_tag(given), string_and_tag(part)
    if one is None or other is None or (other[1] is not None and one[1] != other[1]):
        return None
    return values.string_value(cut(one[0], other[0]), one[1]) if other[0] in one[0] else values.string_value("")


def strlen(given: TermValue | None) -> TermValue | None:
    found = string_and_tag(given)
    return None if found is None else arithmetic.integer_number(len(_require_ascii(found[0])))


def map_string(change: Callable[[str], str], given: TermValue | None) -> TermValue | None:
    found = string_and_tag(given)
    return None if found is None else values.string_value(change(_require_ascii(found[0])), found[1])


def concat(given: list[TermValue | None]) -> TermValue | None:
    """Concatenate; the result has the tag that all share, if any."""
    found = [string_and_tag(each) for each in given]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    tags = {tag for _, tag in known}
    return values.string_value("".join(text for text, _ in known), tags.pop() if len(tags) == 1 else None)


def substr(
    given: TermValue | None, start: TermValue | None, count: TermValue | None, *, counting: bool
) -> TermValue | None:
    """A substring by whole positions; those outside the string are empty."""
    found = string_and_tag(given)
    first = _whole_number(start)
    length = _whole_number(count) if counting else 0
    if found is None or first is None or length is None:
        return None
    text, tag = _require_ascii(found[0]), found[1]
    here = max(first, 1)
    return values.string_value(text[here - 1 : max(first + length, here) - 1] if counting else text[here - 1 :], tag)


def lang_matches(given: TermValue | None, wanted: TermValue | None) -> bool | None:
    """Basic filtering (RFC 4647): the range is the tag or a prefix of it up to a hyphen; `*` is any tag."""
    tag, span = plain_string(given), plain_string(wanted)
    if tag is None or span is None:
        return None
    tag, span = _require_ascii(tag).lower(), _require_ascii(span).lower()
    if span == "*":
        return tag != ""
    return tag == span or (span != "" and tag.startswith(f"{span}-"))


def _whole_number(given: TermValue | None) -> int | None:
    found = arithmetic.as_number(given)
    if found is None:
        return None
    if found.rough or not found.number.is_integer() or abs(found.number) > 1e9:
        raise Undecided
    return int(found.number)


def _require_ascii(text: str) -> str:
    if not text.isascii():
        raise Undecided
    return text


_PLACES = {
    "year": slice(0, 4),
    "month": slice(5, 7),
    "day": slice(8, 10),
    "hours": slice(11, 13),
    "minutes": slice(14, 16),
}
_OF_DAYS = ("year", "month", "day")
_ZONE = re.compile(r"Z|[+-][0-9]{2}:[0-9]{2}")


def date_part(name: str, given: TermValue | None) -> TermValue | None:
    """YEAR to SECONDS, in the time zone of the value. Dates have no parts of the day; seconds are decimals."""
    if given is None:
        return None
    if given.family is None:
        raise Undecided
    if given.family is not Family.DATETIME and not (given.family is Family.DATE and name in _OF_DAYS):
        return None
    lexical = values.lexical_form(given)
    if name == "seconds":
        return arithmetic.exact_number(Decimal(_ZONE.split(lexical[17:])[0]), values.DECIMAL)
    return arithmetic.exact_number(Decimal(lexical[_PLACES[name]]), values.WHOLE)


_TRUTHS = {"true": values.TRUE, "1": values.TRUE, "false": values.FALSE, "0": values.FALSE}
_NEAR = (1e-4, 1e15)
"""Doubles between these are written without an exponent."""


def to_string(given: TermValue) -> TermValue | None:
    """The canonical form of numbers and booleans, the text of all else but blank nodes."""
    if given.family is Family.BLANK:
        return None
    if given.family is Family.BOOLEAN:
        return values.string_value("true" if given.truth else "false")
    if given.family in arithmetic.NUMERIC:
        return values.string_value(values.computed_text(given).split('"')[1])
    if given.family is None:
        raise Undecided
    return values.string_value(values.lexical_form(given))


def to_boolean(given: TermValue) -> TermValue | None:
    if given.family is Family.BOOLEAN or given.family in arithmetic.NUMERIC:
        return values.boolean_value(arithmetic.effective_boolean(given))
    return _TRUTHS.get(_trim(given) or "")


def to_integer(given: TermValue) -> TermValue | None:
    """An integer; fractions are truncated."""
    if given.family is Family.EXACT and given.exact is not None:
        return arithmetic.exact_number(Decimal(math.trunc(given.exact)), values.WHOLE)
    if given.family is Family.DOUBLE and not given.rough:
        return arithmetic.exact_number(Decimal(math.trunc(given.number)), values.WHOLE)
    read = _read_digits(given, values.INTEGER.fullmatch)
    return None if read is None else arithmetic.exact_number(Decimal(read), values.WHOLE)


def to_decimal(given: TermValue) -> TermValue | None:
    if given.family is Family.EXACT and given.exact is not None:
        return arithmetic.exact_number(given.exact, values.DECIMAL)
    if given.family is Family.DOUBLE and not given.rough and _NEAR[0] <= abs(given.number) < _NEAR[1]:
        return arithmetic.exact_number(Decimal(repr(given.number)), values.DECIMAL)
    read = _read_digits(given, values.FRACTION.fullmatch)
    return None if read is None else arithmetic.exact_number(Decimal(read), values.DECIMAL)


def to_double(given: TermValue) -> TermValue | None:
    if given.family in arithmetic.NUMERIC:
        return arithmetic.double_number(given.number, rough=given.rough)
    read = _read_digits(given, values.FLOATING.fullmatch)
    return None if read is None else arithmetic.double_number(float(read))


def _read_digits(given: TermValue, fits: Callable[[str], object]) -> str | None:
    """The digits of a boolean or of a string of plain form; None for what is surely no number."""
    if given.family in arithmetic.NUMERIC:
        raise Undecided
    if given.family is Family.BOOLEAN:
        return "1" if given.truth else "0"
    lexical = _trim(given)
    if lexical is None or fits(lexical):
        return lexical
    if any(each.isdigit() for each in lexical) or lexical.strip("+-").lower() in ("inf", "infinity", "nan"):
        raise Undecided
    return None


def _trim(given: TermValue) -> str | None:
    """The text of a string without surrounding white space, which XML Schema ignores."""
    found = plain_string(given)
    if found is None and given.family is None:
        raise Undecided
    return None if found is None else found.strip(" \t\n\r")


_CASTS: Mapping[str, Callable[[TermValue], TermValue | None]] = {
    "string": to_string,
    "boolean": to_boolean,
    "integer": to_integer,
    "decimal": to_decimal,
    "double": to_double,
}


def _propagate_error(cast: Callable[[TermValue], TermValue | None]) -> Callable[[TermValue | None], TermValue | None]:
    return lambda given: None if given is None else cast(given)


CASTS: Mapping[str, Callable[[TermValue | None], TermValue | None]] = {
    f"<{XSD}{name}>": _propagate_error(cast) for name, cast in _CASTS.items()
}
"""Casts by their names in the algebra."""


_LITERALS = r"[A-Za-z0-9 _\-,:;/=@#%&!~<>'\"]"
_PART = re.compile(
    rf"{_LITERALS}|\\[.\-+*?()\[\]{{}}|^$]|[.^$(|)]"
    r"|(?P<often>[*+]\??|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}\??)|(?P<once>\?\??)"
    r"|\[\^?(?:[A-Za-z0-9]-[A-Za-z0-9]|[A-Za-z0-9 _.,:;/=@])+\]"
)
_STEPS = 20_000
"""The most ways to try a regular expression on a text, without optional parts."""
_OPTIONAL = 6
"""The most optional parts and alternatives: each doubles the ways. A test then takes some 10 ms at worst."""

RegexTest = Callable[[str], bool]


@lru_cache(maxsize=1024)
def compile_regex(pattern: str, flags: str) -> RegexTest | None:
    """A test whether a text has a match; None for an expression that may mean something else to RE2. The test raises
    Undecided if the text is too long, or not ASCII."""
    try:
        translate_regex(pattern, flags, "re2")
    except InvalidPattern:
        return None
    if flags not in ("", "i") or (degree := _degree(pattern)) is None:
        return None
    found = re.compile(_anchor_end(pattern), re.IGNORECASE if flags else 0)

    def search(text: str) -> bool:
        if not (text.isascii() and text.isprintable()) or len(text) ** degree > _STEPS:
            raise Undecided
        return found.search(text) is not None

    return search


def _degree(pattern: str) -> int | None:
    """The degree of the polynomial that bounds the steps by the text's length; None if a part is not known. Only
    single characters may be repeated: a repeated group may take exponential time."""
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


def _anchor_end(pattern: str) -> str:
    """Make `$` the very end, because Python's also matches before a last line break."""
    return re.sub(r"(\\.|\[[^\]]*\])|\$", lambda found: found[1] or r"\Z", pattern)
