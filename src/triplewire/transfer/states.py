"""States: how far an export or an import has come, in a small file that is whole or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from triplewire.config.files import replace_file
from triplewire.model.errors import Conflict

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
