"""Cutting: an event's text into terms, each with its hash, in one pass over the words of the text."""

from __future__ import annotations

import numpy as np

from triplewire.native.arrays import Bytes, Records
from triplewire.native.functions import inlined, unfolded
from triplewire.native.hashes import SEED, finished, stirred
from triplewire.native.words import WIDTH, first_of, low, word_at

_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_TABS, _LINES = np.uint64(0x0909090909090909), np.uint64(0x0A0A0A0A0A0A0A0A)
_HIGH, _EIGHT = np.uint64(0x80), np.uint64(8)


@unfolded
def cut(text: Bytes, start: int, stop: int, terms: Records) -> int:
    """Fill in the terms between two places; how many there are, or -1 where there is no room for them."""
    count, begin, place, found = 0, start, start, SEED
    while begin < stop:
        word = word_at(text, place)
        marks = _separators(word)
        if stop - place < WIDTH:
            # The end of the text ends a term as well.
            marks |= _HIGH << (np.uint64(stop - place) * _EIGHT)
        if marks == 0:
            found = stirred(found, word)
            place += WIDTH
            continue
        length = first_of(marks)
        if length > 0:
            found = stirred(found, low(word, length))
        if count == len(terms):
            return -1
        end = place + length
        term = terms[count]
        term.hash = finished(found, end - begin)
        term.start = begin
        term.stop = end
        term.numeric = -1
        term.timely = -1
        count += 1
        begin, place, found = end + 1, end + 1, SEED
    return count


@inlined
def _separators(word: np.uint64) -> np.uint64:
    """The highest bit of each byte that is a tab or ends a line. Above the first of them there may be more."""
    tabs, lines = word ^ _TABS, word ^ _LINES
    return (((tabs - _ONES) & ~tabs) | ((lines - _ONES) & ~lines)) & _HIGHS
