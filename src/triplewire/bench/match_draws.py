"""Draws: numbers that look random and follow from a seed and a place, so that anything can be made again alone."""

from __future__ import annotations

from math import log1p

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def draw(seed: int, number: int) -> int:
    """64 bits for the `number`th thing of a seed (splitmix64)."""
    state = (seed * _GOLDEN + number * 0xD1342543DE82EF95 + _GOLDEN) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)


def below(bits: int, bound: int) -> tuple[int, int]:
    """A number from 0 to `bound - 1` out of the bits, and the bits that are left."""
    left, number = divmod(bits, bound)
    return number, left


def fraction(bits: int) -> float:
    """From 0 up to 1, out of all of the bits."""
    return bits / 2**64


def exponential(bits: int) -> float:
    """At least 0, 1 in the mean, seldom large."""
    return -log1p(-(bits >> 11) / 2**53)
