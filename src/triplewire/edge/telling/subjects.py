"""Subjects: what a client listens to, and from where on."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

from triplewire.edge.telling.rooms import History, Room
from triplewire.model import START

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Subject(Generic[Key]):
    """A stream or a subscription."""

    name: str
    key: Key
    room: Room[Key]
    history: History
    after: int
    earliest: int | None = None
    """What is kept, if something after that was missed."""
    order: int = START
    """Among others at the same position: where a subscription was made."""
    window: float = 0.0
    """How many seconds messages may wait, where a client does not say."""
    held: Callable[[], AbstractAsyncContextManager[None]] | None = None
    """Lasts as long as somebody listens."""
    ended: Callable[[], bool] = lambda: False
    """Whether nothing more comes of it, anywhere."""

    def holding(self) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self.held is None else self.held()
