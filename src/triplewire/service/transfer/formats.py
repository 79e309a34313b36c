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
    """By how a file's name ends, and what was given in place of that. Raises BadRequest, with the endings that are
    known, and for what cannot be."""
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


# States: how far an export or an import has come, in a small file that is whole or not there.

_LAYOUT = 1
"""Of the file. One that has another is from another version of this program."""


class StateFile:
    """One JSON object on the disk. What is kept survives a crash, of the machine too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, state: dict[str, Any]) -> None:
        """In place of what was there; durable on return."""
        replace_file(self.path, orjson.dumps({"layout": _LAYOUT, **state}))

    def load(self) -> dict[str, Any] | None:
        """What was kept; None if nothing was. Raises Conflict for a file that is none of ours."""
        try:
            state = orjson.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError as error:
            raise Conflict(f"{self.path} is no state of an export or import: {error}") from None
        if not isinstance(state, dict) or state.pop("layout", None) != _LAYOUT:
            raise Conflict(f"{self.path} is no state of an export or import of this version; remove it to begin anew")
        return state

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
        self.path.with_name(self.path.name + ".new").unlink(missing_ok=True)
