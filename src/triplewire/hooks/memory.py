"""The books of hooks in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Lock

from triplewire.hooks.ports import Letter, Place
from triplewire.model import START


class MemoryLedger:
    """Whoever shares it takes turns, as processes do over one directory."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._places: dict[str, Place] = {}
        self._letters: dict[str, dict[int, Letter]] = {}
        self._asked: dict[str, set[int]] = {}
        self._secrets: dict[str, str] = {}

    def note(self, places: Mapping[str, Place], parked: Sequence[Letter] = ()) -> None:
        self._places.update(places)
        for each in parked:
            self._letters.setdefault(each.hook, {})[each.position] = each

    def places(self) -> Mapping[str, Place]:
        counts = {id: len(letters) for id, letters in self._letters.items() if letters}
        known = {**self._places, **counts}
        return {id: replace(self._places.get(id, Place(START)), parked=counts.get(id, 0)) for id in known}

    def letters(self, hook: str, after: int = START, limit: int = 1) -> Sequence[Letter]:
        found = self._letters.get(hook, {})
        return [found[position] for position in sorted(found) if position > after][:limit]

    def remove(self, hook: str, positions: Sequence[int]) -> None:
        for position in positions:
            self._letters.get(hook, {}).pop(position, None)
            self._asked.get(hook, set()).discard(position)

    def ask(self, hook: str, positions: Sequence[int] | None = None) -> int:
        found = self._letters.get(hook, {})
        meant = set(found) if positions is None else set(found) & set(positions)
        self._asked.setdefault(hook, set()).update(meant)
        return len(meant)

    def asked(self) -> Mapping[str, Sequence[int]]:
        return {hook: sorted(positions) for hook, positions in self._asked.items() if positions}

    def done(self, hook: str, positions: Sequence[int]) -> None:
        self._asked.get(hook, set()).difference_update(positions)

    def keep(self, secrets: Mapping[str, str]) -> None:
        self._secrets.update(secrets)

    def secret(self, hook: str) -> str | None:
        return self._secrets.get(hook)

    def forget(self, hook: str) -> None:
        for each in (self._places, self._letters, self._asked, self._secrets):
            each.pop(hook, None)

    def take(self) -> bool:
        return self._turn.acquire(blocking=False)

    def leave(self) -> None:
        self._turn.release()
