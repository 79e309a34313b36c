"""Texts that a user gives on the command line: as they are, as a file, or on standard input."""

from __future__ import annotations

import sys
from pathlib import Path


def read_text(given: str) -> str:
    """`-` is standard input, the name of a file its contents, anything else the text itself."""
    if given == "-":
        return sys.stdin.read()
    try:
        return Path(given).read_text()
    except OSError:
        return given
