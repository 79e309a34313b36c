"""Crashes while a file is replaced: copies of a directory as the process, or the power, would have left it.

```python
with CrashRecorder(folder, tmp_path / "crashes") as recorder:
    replace_file(folder / "state", b"new")
for copy in recorder.copies:
    assert (copy / "state").read_bytes() in (b"old", b"new")
```
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any


class CrashRecorder:
    """Records what a crash at each step of the replacements in a folder would leave there.

    The steps are seen at `os.fsync` and `os.replace`. Content that was not flushed by the time of a crash is copied
    whole, torn and empty; a name that was not flushed, as it was before and after. Not safe for threads.
    """

    def __init__(self, folder: Path, copies: Path) -> None:
        self._folder = folder.resolve()
        self._target = copies
        self._flushed: set[Path] = set()
        self._unflushed_names: set[Path] = set()
        self.copies: list[Path] = []
        """Directories, one for each crash."""
        self.replaced: list[Path] = []
        """Files that were replaced atomically, in order."""

    def __enter__(self) -> CrashRecorder:
        self._fsync, self._replace = os.fsync, os.replace
        self._copy()
        os.fsync, os.replace = self._record_fsync, self._record_replace  # type: ignore[assignment]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.fsync, os.replace = self._fsync, self._replace
        self._copy()

    @property
    def durable(self) -> bool:
        """Whether the names of all files that were replaced are on the disk."""
        return not self._unflushed_names

    def _record_fsync(self, handle: Any) -> None:  # noqa: ANN401
        number = handle if isinstance(handle, int) else handle.fileno()
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        if path.is_relative_to(self._folder) and path.is_file():
            self._copy_torn(path)
        self._fsync(handle)
        self._flushed.add(path)
        self._unflushed_names -= {each for each in self._unflushed_names if each.parent == path}

    def _record_replace(self, source: Any, target: Any, **options: Any) -> None:  # noqa: ANN401
        before, after = Path(source).resolve(), Path(target).resolve()
        self._copy()
        self._replace(source, target, **options)
        if not after.is_relative_to(self._folder):
            return
        self._copy()
        if before not in self._flushed:
            self._copy_torn(after)
        self._flushed.discard(before)
        self._unflushed_names.add(after)
        self.replaced.append(after)

    def _copy(self) -> Path:
        copy = self._target / str(len(self.copies))
        shutil.copytree(self._folder, copy)
        self.copies.append(copy)
        return copy

    def _copy_torn(self, path: Path) -> None:
        size = path.stat().st_size
        for length in (size, size // 2, 0):
            os.truncate(self._copy() / path.relative_to(self._folder), length)
