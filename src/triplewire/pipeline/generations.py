"""Generations of what continuous queries keep: directories, of which there is one more each time that it is made anew.

```
state/run/0, 1, windows-0 …      the first; beside it `told`, which all of a run have
state/run@4711/0, 1 …            made anew at the position 4711, and so on
```

What is erased is in no generation that was made after it had gone from log and lake. The older ones are dropped when
the answers of the batch are written in which the new one was made. Should that batch be done again, stations are made
anew once more; what windows were given was written down and stays.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TOLD = "told"
"""Which answers were told of those that are told once: hashes."""


@dataclass(frozen=True)
class Generations:
    """All that lie in a directory."""

    path: Path

    def of(self, run: str, made: int) -> Path:
        """The one of a run that was made anew at a position; 0 for the first."""
        return self.path / (f"{run}@{made}" if made else run)

    def told(self, run: str) -> Path:
        return self.path / run / _TOLD

    def newest_before(self, run: str, made: int) -> Path | None:
        """The one that came before another, if there is any."""
        found = [(number, path) for name, number, path in self._all() if name == run and number < made]
        return max(found)[1] if found else None

    def oldest(self) -> int | None:
        """Where the oldest that is there was made; None where there is none."""
        return min((number for _, number, path in self._all() if _parts(path)), default=None)

    def begin(self, run: str, made: int) -> None:
        """Stations from nothing: what is there of them was made by a batch that is done again."""
        for number in self.of(run, made).glob("[0-9]*"):
            shutil.rmtree(number)

    def drop_others(self, run: str, made: int) -> None:
        """All but one, also those of other runs, to which nobody goes back."""
        kept, first = self.of(run, made), self.of(run, 0)
        for _, _, path in [*self._all()]:
            for gone in [] if path == kept else _parts(path) if path == first else [path]:
                shutil.rmtree(gone, ignore_errors=True)

    def clear(self) -> None:
        """All of them."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _all(self) -> Iterator[tuple[str, int, Path]]:
        for path in self.path.iterdir() if self.path.exists() else ():
            run, _, made = path.name.partition("@")
            yield run, int(made or 0), path


def _parts(path: Path) -> list[Path]:
    """What a generation has for itself."""
    return [each for each in path.iterdir() if each.name != _TOLD]
