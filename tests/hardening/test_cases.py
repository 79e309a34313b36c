"""Threat: an input that did harm once, and comes again. What `make fuzz` and others have found is fed to the same
target: it is taken, or refused by an InputError.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from fuzz import codecs, languages
from triplewire.model.errors import InputError

CASES = sorted((Path(__file__).parent / "cases").glob("*/*"))
TARGETS = {**codecs.TARGETS, **languages.TARGETS}
SEEDS = [(name, seed) for name, seeds in {**codecs.SEEDS, **languages.SEEDS}.items() for seed in seeds]


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_did_harm_once_is_taken_or_refused(path: Path) -> None:
    with suppress(InputError):
        TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize(("name", "seed"), SEEDS, ids=[name for name, _ in SEEDS])
def test_where_fuzzing_begins_is_taken(name: str, seed: bytes) -> None:
    """Else it would begin with an error, and look for others from there."""
    TARGETS[name](seed)
