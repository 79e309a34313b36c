"""Imports that a process can do without.

PyArrow imports pandas, where it is installed, as soon as it sees a Python list, only to ask whether the list is one of
its frames. That takes half a second and 50 MB in every process. Spark's driver cannot run without pandas; edges and
workers can, and hide it from themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType


class _Hiding(MetaPathFinder):
    """Says of one package that it is not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"{self.package} is hidden in this process", name=fullname)


def hide(package: str) -> None:
    """From now on this process cannot import the package. One that was imported already stays."""
    if not any(isinstance(each, _Hiding) and each.package == package for each in sys.meta_path):
        sys.meta_path.insert(0, _Hiding(package))
