"""File formats of export and import, and the state file from which either resumes.

The state file is replaced atomically and survives a crash of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from triplewire.config.files import replace_file
from triplewire.model.errors import BadRequest, Conflict

STANDARD_STREAM = "-"
"""Standard input or output, in the place of a file's name."""

_GZIP = ".gz"


class FileFormat(StrEnum):
    """The formats, by the names that a user gives them."""

    NQUADS = "nquads"
    TRIG = "trig"
    PARQUET = "parquet"


_ENDINGS = {".nq": FileFormat.NQUADS, ".trig": FileFormat.TRIG, ".parquet": FileFormat.PARQUET}


@dataclass(frozen=True)
class FileEncoding:
    """A format, and whether its bytes are compressed with gzip."""

    format: FileFormat
    zipped: bool = False


def choose_encoding(name: str, given: FileFormat | None = None) -> FileEncoding:
    """Choose by the ending of a file's name, unless a format is given. Raises BadRequest for an unknown ending, and for
    Parquet that is compressed or a stream."""
    zipped = name.lower().endswith(_GZIP)
    plain = name.lower().removesuffix(_GZIP)
    format = given or next((each for ending, each in _ENDINGS.items() if plain.endswith(ending)), None)
    if format is None:
        known = ", ".join(_ENDINGS)
        raise BadRequest(f"{name}: the name does not tell the format; known are {known}, or say it with --format")
    if format is FileFormat.PARQUET and name == STANDARD_STREAM:
        raise BadRequest("Parquet cannot be a stream: it is read from its end; name a file")
    if format is FileFormat.PARQUET and zipped:
        raise BadRequest(f"{name}: Parquet is compressed inside; leave {_GZIP} out")
    return FileEncoding(format, zipped)


_LAYOUT = 2
"""The layout of a state file; another version of this program may have another."""


class StateFile:
    """The progress of an export or import as one JSON object on the disk. It survives a crash of the machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: dict[str, Any]) -> None:
        """Replace the state; durable on return."""
        replace_file(self.path, orjson.dumps({"layout": _LAYOUT, **state}))

    def load(self) -> dict[str, Any] | None:
        """Return the state, or None if there is none. Raises Conflict for a file of another kind or version."""
        try:
            state = orjson.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError as error:
            raise Conflict(f"{self.path} is no state of an export or import: {error}") from None
        if not isinstance(state, dict) or state.pop("layout", None) != _LAYOUT:
            raise Conflict(f"{self.path} is no state of an export or import of this version; remove it to begin anew")
        return state

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)
