"""Ledgers: how far each strand is, on the disk, so that a relay goes on after whatever ended it.

Before some events are published it is written down which they are. If the relay ends before it hears the answer, it
publishes the very same events again, with the same key, and the edge below, which knows the key, stores them once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import uuid4

import orjson

from triplewire.config.files import file_lock, replace_file
from triplewire.model.errors import Conflict

_POSITION = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Record:
    """Everything up to `after` is below. What is above it up to `upto`, if that is said, may be below as well."""

    upstream: str
    """The id of the edge above, whose positions these are."""
    after: str
    upto: str | None = None

    def before(self, position: str) -> bool:
        """Whether it would be at a later place there. A time, or another word for a place, is before all positions."""
        return not _POSITION.fullmatch(self.after) or self.after < position


class Ledger:
    """One record for each strand, a small file that is replaced at once; a reader sees the old or the new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, key: str) -> Record | None:
        """The record that was kept last, or None. Raises Conflict for a file that is none of ours."""
        path = self._path(key)
        try:
            return Record(**orjson.loads(path.read_bytes())["record"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise Conflict(f"{path} holds no position of a relay ({error}); remove it to begin anew") from None

    def intend(self, key: str, name: str, record: Record) -> None:
        """Keep a record before what it speaks of is published. On return it survives the machine's end."""
        self._write(key, name, record, durable=True)

    def settle(self, key: str, name: str, record: Record) -> None:
        """Keep a record after it was published. Should it be lost, the intention is there, and is done again."""
        self._write(key, name, record, durable=False)

    def identity(self) -> str:
        """By which edges know this relay; made when it is asked for the first time."""
        path = self._folder / "id"
        if not path.exists():
            replace_file(path, uuid4().hex.encode(), durable=True)
        return path.read_text()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Raises Conflict if another process holds it: two that carry the same would only be in each other's way."""
        with file_lock(self._folder / "lock", f"another relay is at work with the positions in {self._folder}"):
            yield

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _write(self, key: str, name: str, record: Record, *, durable: bool) -> None:
        replace_file(self._path(key), orjson.dumps({"strand": name, "record": asdict(record)}), durable=durable)
