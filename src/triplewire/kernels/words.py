"""Byte strings in compiled code: words of eight bytes, 64-bit hashes, comparisons, and a memory fence.

Hashes are the same in every process of a machine. Equal hashes are a hint only: the texts decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from triplewire.kernels.arrays import Bytes, Int64, UInt64
from triplewire.kernels.compiler import compiled, inlined

Numba: TypeAlias = Any
"""Types and values of the compiler, which has no types for them."""

WIDTH = 8
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EIGHT = np.uint64(8)


@intrinsic
def _load(typing: Numba, data: Numba, place: Numba) -> Numba:
    """The word that starts at a byte offset, aligned or not."""

    def code(context: Numba, builder: Numba, signature: Numba, args: Numba) -> Numba:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        pointer = builder.gep(array.data, [args[1]])
        return builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), code


@intrinsic
def _trailing_zeros(typing: Numba, word: Numba) -> Numba:
    """The number of zero bits below the lowest bit that is set."""

    def code(context: Numba, builder: Numba, signature: Numba, args: Numba) -> Numba:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), code


@intrinsic
def double_bits(typing: Numba, value: Numba) -> Numba:
    """The bits of a double as a word."""

    def code(context: Numba, builder: Numba, signature: Numba, args: Numba) -> Numba:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.uint64(types.float64), code


@inlined
def low_bytes(word: np.uint64, count: int) -> np.uint64:
    """The first `count` bytes of a word, fewer than eight; the other bytes are zero."""
    return word & ~(_ALL << (np.uint64(count) * _EIGHT))


@compiled
def _read_tail(data: Bytes, place: int) -> np.uint64:
    found = np.uint64(0)
    for at in range(len(data) - 1, place - 1, -1):
        found = found << _EIGHT | np.uint64(data[at])
    return found


@inlined
def read_word(data: Bytes, place: int) -> np.uint64:
    """The eight bytes at an offset, filled up with zeros behind the end of the data."""
    if place + WIDTH <= len(data):
        return _load(data, place)  # type: ignore[call-arg]
    return _read_tail(data, place)


@inlined
def first_marked_byte(marks: np.uint64) -> int:
    """The number of the first byte whose highest bit is set. There must be one."""
    return _trailing_zeros(marks) >> 3  # type: ignore[call-arg]


@inlined
def same_bytes(text: Bytes, start: int, stop: int, pool: Bytes, first: int, length: int) -> bool:
    if stop - start != length:
        return False
    whole = length - length % WIDTH
    for offset in range(0, whole, WIDTH):
        if read_word(text, start + offset) != read_word(pool, first + offset):
            return False
    rest = length - whole
    return rest == 0 or low_bytes(read_word(text, start + whole), rest) == low_bytes(
        read_word(pool, first + whole), rest
    )


SEED = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(32)


@compiled
def hash_bytes(data: Bytes, start: int, stop: int) -> np.uint64:
    found = SEED
    place = start
    while place + WIDTH <= stop:
        found = mix_word(found, read_word(data, place))
        place += WIDTH
    if place < stop:
        found = mix_word(found, low_bytes(read_word(data, place), stop - place))
    return finish_hash(found, stop - start)


@inlined
def mix_word(found: np.uint64, word: np.uint64) -> np.uint64:
    """Mix one more word into a hash."""
    found = (found ^ word) * _PRIME
    return found ^ (found >> _HALF)


@inlined
def finish_hash(found: np.uint64, length: int) -> np.uint64:
    """Finish a hash. The length tells texts apart that differ in zeros at the end."""
    value = (found ^ np.uint64(length)) * _FIRST
    value = (value ^ (value >> _HALF)) * _SECOND
    return value ^ (value >> _HALF)


@inlined
def hash_pair(one: np.uint64, other: np.uint64, salt: np.uint64) -> np.uint64:
    """The hash of two hashes in this order. `salt` distinguishes kinds of pairs."""
    turned = (other << _HALF) | (other >> _HALF)
    value = ((one + salt * _SECOND) ^ turned) * _FIRST
    return value ^ (value >> _HALF)


def hash_texts(text: Bytes, start: Int64) -> UInt64:
    """The hashes of concatenated texts, which start at the given offsets."""
    found = np.zeros(len(start) - 1, np.uint64)
    _hash_into(found, text, start)
    return found


@compiled
def _hash_into(found: UInt64, text: Bytes, start: Int64) -> None:
    for each in range(len(found)):
        found[each] = hash_bytes(text, start[each], start[each + 1])


def hash_text(term: str) -> int:
    data = np.frombuffer(term.encode(), np.uint8)
    return int(hash_bytes(data, 0, len(data)))


def _fence(_typing: Any) -> Any:  # noqa: ANN401 - of numba's own kinds
    def made(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:  # noqa: ANN401
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), made


fence = cast(Callable[[], None], intrinsic(_fence))
"""A memory fence for compiled code: neither compiler nor processor moves a read or a write across it. Other
processes see what was written before it before they see what is written after it."""


@compiled
def memory_fence() -> None:
    """The same fence for Python code."""
    fence()
