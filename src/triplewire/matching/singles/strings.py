"""Strings: functions of strings, which keep the language tag of what they are given where SPARQL says so.

None is an error. Where characters are counted or changed, only those of ASCII are known.
"""

from __future__ import annotations

from collections.abc import Callable

from triplewire.matching.singles.facts import Fact, Undecided, lexical_of, string
from triplewire.matching.singles.numbers import counted, numeric
from triplewire.sparql.algebra import Family

_STRINGS = frozenset({Family.STRING, Family.TAGGED})
Words = tuple[str, str | None]


def worded(given: Fact | None) -> Words | None:
    """The text and the tag of a string; None for anything else."""
    if given is None or given.family not in _STRINGS:
        if given is not None and given.family is None and not (given.text or "").endswith(">"):
            raise Undecided
        return None
    return lexical_of(given), given.tag


def plain(given: Fact | None) -> str | None:
    """The text of a string without a tag."""
    found = worded(given)
    return found[0] if found is not None and found[1] is None else None


def str_of(given: Fact | None) -> Fact | None:
    if given is None or given.family is Family.BLANK:
        return None
    return string(lexical_of(given))


def lang(given: Fact | None) -> Fact | None:
    if given is None or given.family in (Family.IRI, Family.BLANK):
        return None
    if given.family is None and given.datatype is None:
        raise Undecided
    return string(given.tag or "")


def datatype(given: Fact | None) -> Fact | None:
    if given is None or given.family in (Family.IRI, Family.BLANK):
        return None
    if given.datatype is None:
        raise Undecided
    return Fact(Family.IRI, f"<{given.datatype}>", given.datatype)


def matching(test: Callable[[str, str], bool], left: Fact | None, right: Fact | None) -> bool | None:
    """A test of two strings whose tags, if there are any, are compatible."""
    one, other = worded(left), worded(right)
    if one is None or other is None or (other[1] is not None and one[1] != other[1]):
        return None
    return test(one[0], other[0])


def before(given: Fact | None, part: Fact | None) -> Fact | None:
    return _parted(given, part, lambda text, found: text.partition(found)[0] if found else "")


def after(given: Fact | None, part: Fact | None) -> Fact | None:
    return _parted(given, part, lambda text, found: text.partition(found)[2] if found else text)


def _parted(given: Fact | None, part: Fact | None, cut: Callable[[str, str], str]) -> Fact | None:
    """With the tag where the part was found; the empty string without it where not."""
    one, other = worded(given), worded(part)
    if one is None or other is None or (other[1] is not None and one[1] != other[1]):
        return None
    return string(cut(one[0], other[0]), one[1]) if other[0] in one[0] else string("")


def strlen(given: Fact | None) -> Fact | None:
    found = worded(given)
    return None if found is None else counted(len(_simple(found[0])))


def mapped(change: Callable[[str], str], given: Fact | None) -> Fact | None:
    found = worded(given)
    return None if found is None else string(change(_simple(found[0])), found[1])


def concat(given: list[Fact | None]) -> Fact | None:
    """In the language of all of them, if they share one."""
    found = [worded(each) for each in given]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    tags = {tag for _, tag in known}
    return string("".join(text for text, _ in known), tags.pop() if len(tags) == 1 else None)


def substr(given: Fact | None, start: Fact | None, count: Fact | None, *, counting: bool) -> Fact | None:
    """By whole positions; what lies outside of the string is not there."""
    found = worded(given)
    first = _whole(start)
    length = _whole(count) if counting else 0
    if found is None or first is None or length is None:
        return None
    text, tag = _simple(found[0]), found[1]
    here = max(first, 1)
    return string(text[here - 1 : max(first + length, here) - 1] if counting else text[here - 1 :], tag)


def lang_matches(given: Fact | None, wanted: Fact | None) -> bool | None:
    """By basic filtering: the range is the tag or starts it, at a hyphen; `*` is any tag."""
    tag, span = plain(given), plain(wanted)
    if tag is None or span is None:
        return None
    tag, span = _simple(tag).lower(), _simple(span).lower()
    if span == "*":
        return tag != ""
    return tag == span or (span != "" and tag.startswith(f"{span}-"))


def _whole(given: Fact | None) -> int | None:
    found = numeric(given)
    if found is None:
        return None
    if found.rough or not found.number.is_integer() or abs(found.number) > 1e9:
        raise Undecided
    return int(found.number)


def _simple(text: str) -> str:
    if not text.isascii():
        raise Undecided
    return text
