"""Hashes: digests of strings, as hexadecimal digits."""

from __future__ import annotations

from collections.abc import Callable

from triplewire.sparql.compile.arithmetic import Bind
from triplewire.sparql.compile.computed import Text
from triplewire.sparql.compile.sql import call
from triplewire.sparql.compile.strings import plain
from triplewire.sparql.compile.values import Value


def digest(name: str) -> Callable[[Bind, Value], Value]:
    """Of a string without a tag; an error for anything else."""
    return lambda bind, value: Text(bind(call(f"TW_{name.upper()}", plain(value, bind))))
