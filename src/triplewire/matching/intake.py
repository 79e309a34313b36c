"""Intake: changes of the registry on their way into the index. Only who has its lock takes any in."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson

from triplewire.matching.index import Membership
from triplewire.matching.index.store import Store
from triplewire.matching.index.tables import CALL, DECIDED, GONE, UNDECIDED
from triplewire.matching.journals import Entry
from triplewire.matching.known import Known
from triplewire.native.arrays import Int64
from triplewire.storage.registry.ontologies import ONTOLOGY
from triplewire.storage.registry.ports import RegistryChange
from triplewire.storage.registry.subscriptions import LANE, SHAPE, SUBSCRIPTION

Target = tuple[str, bool]
"""A program, as its shape and whether it is the guard of it."""

_NOTED = {ONTOLOGY: Entry.ONTOLOGY, LANE: Entry.LANE}


@dataclass
class Joining:
    """Subscriptions that come to one program: their places among all, and what they are there."""

    places: list[int] = field(default_factory=list)
    memberships: list[Membership] = field(default_factory=list)


def take(store: Store, known: Mapping[str, Known], changes: Sequence[RegistryChange], upto: int) -> None:
    """Have the index know some changes, all that there are up to a position, and speak for that position. Raises
    StorageFull; then it knows none of them."""
    if changes:
        Intake(store, dict(known), changes).take(upto)
    else:
        header = store.files.header
        store.know(upto, int(header["last"]), int(header["told"]))


class Intake:
    """What some changes come to. It is worked out first and written then, so that nothing is left half written."""

    def __init__(self, store: Store, known: dict[str, Known], changes: Sequence[RegistryChange]) -> None:
        self._store = store
        self._known = known
        self._changes = changes
        self._fresh: list[Known] = []
        self._joining = defaultdict[Target, Joining](Joining)
        self._journal = np.zeros(len(changes), np.int64)
        self._called: list[int] = []
        """Places of changes that are about subscriptions."""
        self._states: list[int] = []
        for place, change in enumerate(changes):
            self._look_at(place, change)

    def take(self, upto: int) -> None:
        store, memberships = self._store, [each for joining in self._joining.values() for each in joining.memberships]
        additions = [each for known in self._fresh for each in known.additions]
        store.reserve(additions, memberships, sum(self._postings(*each) for each in self._joining.items()))
        store.reserve_members(len(self._changes))
        with store.files.writing():
            for addition in additions:
                store.add_program(addition)
            self._enroll(self._joined())
            store.note(self._journal[self._journal > 0])
            last = self._changes[-1]
            store.know(upto, last.position, fingerprint(last))

    def _look_at(self, place: int, change: RegistryChange) -> None:
        if change.kind == SUBSCRIPTION:
            self._called.append(place)
            self._states.append(self._state(change, len(self._called) - 1))
        elif change.kind in _NOTED:
            self._journal[place] = _NOTED[change.kind].at(change.position)
        elif change.kind == SHAPE and change.value is not None and change.key not in self._known:
            self._known[change.key] = Known(change)
            self._fresh.append(self._known[change.key])
            self._journal[place] = Entry.SHAPE.at(change.position)

    def _state(self, change: RegistryChange, number: int) -> int:
        """What becomes of a subscription, which joins a group if there is one for it."""
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

    def _postings(self, target: Target, joining: Joining) -> int:
        key, guarded = target
        (addition,) = (each for each in self._known[key].additions if each.guards == guarded)
        return addition.widest * len(joining.memberships)

    def _joined(self) -> Int64:
        """The group of each subscription, or -1."""
        groups = np.full(len(self._called), -1, np.int64)
        programs = self._store.files.columns["programs"]
        shapes = programs.data["shape"][: programs.size]
        guards = programs.data["guards"][: programs.size]
        for (key, guarded), joining in self._joining.items():
            number = np.flatnonzero((shapes == self._known[key].change.position) & (guards == guarded))[-1]
            groups[joining.places] = self._store.join(int(number), joining.memberships)
        return groups

    def _enroll(self, groups: Int64) -> None:
        changes = [self._changes[place] for place in self._called]
        calls = np.zeros(len(changes), CALL)
        hashes = b"".join(hashlib.blake2b(each.key.encode(), digest_size=16).digest() for each in changes)
        calls["high"], calls["low"] = np.frombuffer(hashes, "<u8").reshape(-1, 2).T
        calls["at"] = [each.position for each in changes]
        calls["group"], calls["state"] = groups, self._states
        before = self._store.enroll(calls)
        entry = np.where(before == UNDECIDED, Entry.ENDED.at(0), 0)
        entry = np.where(calls["state"] == UNDECIDED, Entry.MADE.at(0), entry)
        self._journal[self._called] = np.where(entry > 0, Entry.SHAPE.at(1) * calls["at"] + entry, 0)


def fingerprint(change: RegistryChange) -> int:
    """What a change is told by, should the registry be another one."""
    text = orjson.dumps([change.position, change.kind, change.key, change.value])
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
