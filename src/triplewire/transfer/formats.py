"""Formats: how events are written into files, and how one is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from triplewire.model.errors import BadRequest

STANDARD = "-"
"""Standard input or output, in the place of a file's name."""

_GZIP = ".gz"


class Format(StrEnum):
    """The formats, by the names that a user gives them."""

    NQUADS = "nquads"
    TRIG = "trig"
    PARQUET = "parquet"


_ENDINGS = {".nq": Format.NQUADS, ".trig": Format.TRIG, ".parquet": Format.PARQUET}


@dataclass(frozen=True)
class Shape:
    """A format, and whether its bytes are compressed with gzip."""

    format: Format
    zipped: bool = False


def shape_of(name: str, given: Format | None = None) -> Shape:
    """By how a file's name ends, and what was given in place of that. Raises BadRequest, with the endings that are
    known, and for what cannot be."""
    zipped = name.lower().endswith(_GZIP)
    plain = name.lower().removesuffix(_GZIP)
    format = given or next((each for ending, each in _ENDINGS.items() if plain.endswith(ending)), None)
    if format is None:
        known = ", ".join(_ENDINGS)
        raise BadRequest(f"{name}: the name does not tell the format; known are {known}, or say it with --format")
    if format is Format.PARQUET and name == STANDARD:
        raise BadRequest("Parquet cannot be a stream: it is read from its end; name a file")
    if format is Format.PARQUET and zipped:
        raise BadRequest(f"{name}: Parquet is compressed inside; leave {_GZIP} out")
    return Shape(format, zipped)
