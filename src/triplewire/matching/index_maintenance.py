"""Index maintenance: applies registry changes to the index, and keeps a journal of those that concern more than the
index.

Only the holder of the index lock applies changes; they are worked out first and written then, so that nothing is left
half written. A journal entry is a position and what happened there, so that not every worker has to read all changes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
import orjson

from triplewire.kernels.arrays import Int64
from triplewire.matching.index import Guards, Membership, Memberships
from triplewire.matching.index.columns import CALL, DECIDED, GONE, UNDECIDED
from triplewire.matching.index.memberships import shape_memberships
from triplewire.matching.index.store import IndexStore, ProgramAddition
from triplewire.matching.interpreter.matcher import InterpretedQuery, interpret_shape
from triplewire.matching.shapes import Shape
from triplewire.security.visibility import Visibility
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import LANE, SHAPE, SUBSCRIPTION

INDEX_CHANGES: Final = 20_000
"""Changes of the registry that are read and indexed at once: some 50 MB."""


_NEAR = 64
"""Changes at most so many positions apart are read in one request."""


class JournalEntry(IntEnum):
    """A change of the registry that concerns more than the index: a number made of its position and kind. Workers
    read these alone and not the whole registry. LANE is a shape's move to the slow lane; MADE and ENDED are about
    subscriptions that the index does not decide."""

    SHAPE = 0
    ONTOLOGY = 1
    LANE = 2
    MADE = 3
    ENDED = 4

    def at(self, position: int) -> int:
        """The number of an entry at a position."""
        return position * len(JournalEntry) + self


_KINDS = {
    JournalEntry.SHAPE: SHAPE,
    JournalEntry.ONTOLOGY: ONTOLOGY,
    JournalEntry.LANE: LANE,
    JournalEntry.MADE: SUBSCRIPTION,
    JournalEntry.ENDED: SUBSCRIPTION,
}


class ChangeSource(Protocol):
    """The part of a registry that matching needs."""

    def changes(self, after: int, through: int, most: int | None = None) -> Sequence[RegistryChange]:
        """Changes at positions p with `after < p <= through`, in order; at most the first `most`."""


def read_journal(registry: ChangeSource, numbers: Int64) -> Iterator[RegistryChange]:
    """The changes of journal entries, in order. An ended subscription is a removal, even if another took its place."""
    positions = numbers // len(JournalEntry)
    for number, change in zip(
        numbers.tolist(), _read_changes(registry, positions, numbers % len(JournalEntry)), strict=True
    ):
        gone = number % len(JournalEntry) == JournalEntry.ENDED
        yield RegistryChange(change.position, change.kind, change.key, None) if gone else change


def read_subscriptions(registry: ChangeSource, positions: Int64) -> Iterator[RegistryChange]:
    """The subscriptions that were made at these positions, in order."""
    return _read_changes(registry, positions, np.full(len(positions), JournalEntry.MADE))


def _read_changes(registry: ChangeSource, positions: Int64, entries: Int64) -> Iterator[RegistryChange]:
    """Read changes that are near each other in one request."""
    gaps = np.flatnonzero(np.diff(positions) > _NEAR) + 1
    for start, stop in pairwise([0, *gaps.tolist(), len(positions)]):
        for first in range(start, stop, INDEX_CHANGES // _NEAR):
            part = slice(first, min(first + INDEX_CHANGES // _NEAR, stop))
            wanted = positions[part].tolist()
            found = {(each.position, each.kind): each for each in registry.changes(int(wanted[0]) - 1, int(wanted[-1]))}
            yield from (found[at, _KINDS[JournalEntry(kind)]] for at, kind in zip(wanted, entries[part], strict=True))


@dataclass(frozen=True)
class KnownShape:
    """A registered shape. Everything derived from it is made on first use: most workers never need it."""

    change: RegistryChange

    @cached_property
    def memberships(self) -> Memberships:
        return shape_memberships(self._shape)

    @cached_property
    def guards(self) -> Guards:
        return Guards(self._shape)

    @cached_property
    def interpreted(self) -> InterpretedQuery | None:
        """The interpreted query, or None if the interpreter does not know a part of it."""
        return interpret_shape(self._shape)

    @property
    def visibility(self) -> Visibility | None:
        """The visibility that restricts the shape; None for all."""
        return self._shape.visibility if self.change.value and "visibility" in self.change.value else None

    @property
    def additions(self) -> list[ProgramAddition]:
        """The programs of the shape."""
        programs = ((self.memberships.program, False), (self.guards.program, True))
        return [ProgramAddition(each, self.change.position, guards) for each, guards in programs if each is not None]

    @cached_property
    def _shape(self) -> Shape:
        assert self.change.value is not None, "shapes are not removed"
        return Shape.from_value(self.change.value)


ProgramKey = tuple[str, bool]
"""A program: the key of its shape, and whether it is the guard."""

_NOTED = {ONTOLOGY: JournalEntry.ONTOLOGY, LANE: JournalEntry.LANE}


@dataclass
class GroupAdditions:
    """Subscriptions that join one program: their indexes among all, and their memberships."""

    places: list[int] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)


def apply_changes(
    store: IndexStore, known: Mapping[str, KnownShape], changes: Sequence[RegistryChange], through: int
) -> None:
    """Index all changes up to a position. Raises StorageFull; then none of them is indexed."""
    if changes:
        IndexUpdate(store, dict(known), changes).apply(through)
    else:
        header = store.files.header
        store.know(through, int(header["last"]), int(header["fingerprint"]))


class IndexUpdate:
    """The effect of some changes on the index. It is computed first and then written, so that a failure leaves
    nothing half written."""

    def __init__(self, store: IndexStore, known: dict[str, KnownShape], changes: Sequence[RegistryChange]) -> None:
        self._store = store
        self._known = known
        self._changes = changes
        self._fresh: list[KnownShape] = []
        self._joining = defaultdict[ProgramKey, GroupAdditions](GroupAdditions)
        self._journal = np.zeros(len(changes), np.int64)
        self._subscription_changes: list[int] = []
        """Indexes of the changes of subscriptions."""
        self._states: list[int] = []
        for place, change in enumerate(changes):
            self._add_change(place, change)

    def apply(self, through: int) -> None:
        store, memberships = self._store, [each for joining in self._joining.values() for each in joining.memberships]
        additions = [each for known in self._fresh for each in known.additions]
        store.reserve(additions, memberships, sum(self._postings(*each) for each in self._joining.items()))
        store.reserve_members(len(self._changes))
        with store.files.writing():
            for addition in additions:
                store.add_program(addition)
            self._enroll(self._join_groups())
            store.note(self._journal[self._journal > 0])
            last = self._changes[-1]
            store.know(through, last.position, change_fingerprint(last))

    def _add_change(self, place: int, change: RegistryChange) -> None:
        if change.kind == SUBSCRIPTION:
            self._subscription_changes.append(place)
            self._states.append(self._state(change, len(self._subscription_changes) - 1))
        elif change.kind in _NOTED:
            self._journal[place] = _NOTED[change.kind].at(change.position)
        elif change.kind == SHAPE and change.value is not None and change.key not in self._known:
            self._known[change.key] = KnownShape(change)
            self._fresh.append(self._known[change.key])
            self._journal[place] = JournalEntry.SHAPE.at(change.position)

    def _state(self, change: RegistryChange, number: int) -> int:
        """The state of a subscription after a change. It joins a group if there is one for it."""
        if change.value is None:
            return GONE
        key, constants = change.value["shape"], change.value["constants"]
        known = self._known[key]
        membership, guarded = known.memberships.of(constants), False
        state = UNDECIDED if membership is None else DECIDED
        if membership is None and known.guards.program is not None:
            membership, guarded = known.guards.of(constants), True
        if membership is not None:
            joining = self._joining[key, guarded]
            joining.places.append(number)
            joining.memberships.append(membership)
        return state

    def _postings(self, target: ProgramKey, joining: GroupAdditions) -> int:
        key, guarded = target
        (addition,) = (each for each in self._known[key].additions if each.guards == guarded)
        return addition.widest * len(joining.memberships)

    def _join_groups(self) -> Int64:
        """The group of each subscription, or -1."""
        groups = np.full(len(self._subscription_changes), -1, np.int64)
        programs = self._store.files.columns["programs"]
        shapes = programs.data["shape"][: programs.size]
        guards = programs.data["guards"][: programs.size]
        for (key, guarded), joining in self._joining.items():
            number = np.flatnonzero((shapes == self._known[key].change.position) & (guards == guarded))[-1]
            groups[joining.places] = self._store.join(int(number), joining.memberships)
        return groups

    def _enroll(self, groups: Int64) -> None:
        changes = [self._changes[place] for place in self._subscription_changes]
        calls = np.zeros(len(changes), CALL)
        hashes = b"".join(hashlib.blake2b(each.key.encode(), digest_size=16).digest() for each in changes)
        calls["high"], calls["low"] = np.frombuffer(hashes, "<u8").reshape(-1, 2).T
        calls["at"] = [each.position for each in changes]
        calls["group"], calls["state"] = groups, self._states
        before = self._store.enroll(calls)
        entry = np.where(before == UNDECIDED, JournalEntry.ENDED.at(0), 0)
        entry = np.where(calls["state"] == UNDECIDED, JournalEntry.MADE.at(0), entry)
        self._journal[self._subscription_changes] = np.where(
            entry > 0, JournalEntry.SHAPE.at(1) * calls["at"] + entry, 0
        )


def change_fingerprint(change: RegistryChange) -> int:
    """A hash of a change, by which another registry is recognized."""
    text = orjson.dumps([change.position, change.kind, change.key, change.value])
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
