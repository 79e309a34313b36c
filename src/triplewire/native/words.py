"""Words: bytes read eight at a time, which compiled code has no other way to do."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from triplewire.native.arrays import Bytes
from triplewire.native.functions import compiled, inlined

Numba: TypeAlias = Any
"""Types and values of the compiler, which has no types for them."""

WIDTH = 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EIGHT = np.uint64(8)


@intrinsic
def _load(typing: Numba, data: Numba, place: Numba) -> Numba:
    """The word that begins at a place, wherever that is."""

    def code(context: Numba, builder: Numba, signature: Numba, args: Numba) -> Numba:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(array.data, [args[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), code


@intrinsic
def _zeros(typing: Numba, word: Numba) -> Numba:
    """How many bits below the lowest that is set."""

    def code(context: Numba, builder: Numba, signature: Numba, args: Numba) -> Numba:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


@intrinsic
def bits_of(typing: Numba, value: Numba) -> Numba:
    """Those of a double, as a word."""

    def code(context: Numba, builder: Numba, signature: Numba, args: Numba) -> Numba:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), code


@inlined
def low(word: np.uint64, count: int) -> np.uint64:
    """The first so many bytes of a word, of which there are less than eight; the others are zero."""
    return word & ~(_ALL << (np.uint64(count) * _EIGHT))


@compiled
def _rest(data: Bytes, place: int) -> np.uint64:
    found = np.uint64(0)
    for at in range(len(data) - 1, place - 1, -1):
        found = found << _EIGHT | np.uint64(data[at])
    return found


@inlined
def word_at(data: Bytes, place: int) -> np.uint64:
    """The eight bytes at a place; where the data ends before, zeros follow."""
    if place + WIDTH <= len(data):
        return _load(data, place)  # type: ignore[call-arg]
    return _rest(data, place)


@inlined
def first_of(marks: np.uint64) -> int:
    """The number of the first byte that has its highest bit set. There must be one."""
    return _zeros(marks) >> 3  # type: ignore[call-arg]


@inlined
def same(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> bool:
    """Are these the same bytes?"""
    if stop - start != length:
        return False
    whole = length - length % WIDTH
    for offset in range(0, whole, WIDTH):
        if word_at(text, start + offset) != word_at(pool, first + offset):
            return False
    rest = length - whole
    return rest == 0 or low(word_at(text, start + whole), rest) == low(word_at(pool, first + whole), rest)
