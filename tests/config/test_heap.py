"""Full garbage collections that look at what is new."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from triplewire.config.heap import SurvivorFreezer


class _Node:
    def __init__(self) -> None:
        self.itself = self


@contextmanager
def _freezing(collections: int) -> Iterator[None]:
    gc.disable()
    gc.collect()
    freezer = SurvivorFreezer(collections)
    gc.callbacks.append(freezer)
    try:
        yield
    finally:
        gc.callbacks.remove(freezer)
        gc.unfreeze()
        gc.enable()


def test_survivors_are_not_looked_at_again_until_all_are() -> None:
    with _freezing(3):
        node = _Node()
        gone = weakref.ref(node)
        gc.collect()
        del node
        for _ in range(2):
            gc.collect()
            assert gone() is not None, "frozen"
        gc.collect()
        assert gone() is None


def test_new_garbage_is_collected() -> None:
    with _freezing(100):
        for _ in range(3):
            gone = weakref.ref(_Node())
            gc.collect()
            assert gone() is None


def test_only_full_collections_freeze() -> None:
    with _freezing(100):
        before = gc.get_freeze_count()
        gc.collect(1)
        assert gc.get_freeze_count() == before
        gc.collect()
        assert gc.get_freeze_count() > before
