"""The erasure view is a log that hides what is being erased, from the moment at which the erasure was requested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from triplewire.model import Erasure
from triplewire.model.erasure import apply_erasures, drop_affected
from triplewire.storage.log.ports import AppendResult, EdgeLog, ErasableLog, Publication

Pending = Callable[[], Sequence[Erasure]]
"""Pending erasures. They are read at every call, because another process may have requested one."""


class FullLog(EdgeLog, ErasableLog, Protocol):
    """All verbs of a log."""


class ErasureView:
    """A log without what is being erased. It does not erase: until that is done, it leaves it out."""

    def __init__(self, log: FullLog, pending: Pending) -> None:
        self._log = log
        self._pending = pending
        # Erasure changes nothing of these: positions and volumes stay.
        self.head, self.begin, self.floor, self.page_end = log.head, log.begin, log.floor, log.page_end
        self.volumes, self.volume, self.segments = log.volumes, log.volume, log.segments
        self.trim, self.losses, self.erase = log.trim, log.losses, log.erase

    def append(self, publications: Sequence[Publication]) -> list[Sequence[int]]:
        """Events that are being erased do not exist any more: an event with the same id is stored as a new one."""
        answers = self._log.append(publications)
        if not any(isinstance(answer, AppendResult) for answer in answers) or not (erasures := self._pending()):
            return answers
        pairs = zip(publications, answers, strict=True)
        return [self._outlived(each, answer, erasures) for each, answer in pairs]

    def _outlived(self, publication: Publication, answer: Sequence[int], erasures: Sequence[Erasure]) -> Sequence[int]:
        """The positions of a publication, without those that are going."""
        if not isinstance(answer, AppendResult):
            return answer
        staying = set(drop_affected(self._log.entries(answer), erasures)["position"].to_pylist())
        if staying >= set(answer):
            return answer
        if answer.others and not publication.apart:
            return self._log.append([replace(publication, given=frozenset())])[0]
        going = [number for number, position in enumerate(answer) if position not in staying]
        streams = [publication.stream if isinstance(publication.stream, str) else publication.stream[n] for n in going]
        (new,) = self._log.append([Publication(streams, [publication.events[number] for number in going])])
        moved = dict(zip(going, new, strict=True))
        others = {id: position for id, position in answer.others.items() if position in staying}
        repeated = answer.repeated + len(answer.others) - len(others) - len(going)
        return AppendResult((moved.get(n, position) for n, position in enumerate(answer)), repeated, others)

    def read(self, after: int, through: int, limit: int) -> pa.Table:
        found = self._log.read(after, through, limit)
        # Asked after the reading: what was read before somebody asked is not shown either.
        erasures = self._pending()
        if not erasures:
            return found
        pages = [apply_erasures(found, erasures)]
        # Fewer than asked for would mean that there are no more.
        while found.num_rows == limit and (missing := limit - sum(page.num_rows for page in pages)):
            found = self._log.read(found["position"][-1].as_py(), through, limit)
            pages.append(apply_erasures(found, erasures).slice(0, missing))
        return pa.concat_tables(pages)

    def entries(self, positions: Sequence[int]) -> pa.Table:
        """The entries at these positions of which nothing is erased: what was matched goes by the whole of an event."""
        return drop_affected(self._log.entries(positions), self._pending())

    def find(self, event: str, stream: str | None = None) -> int | None:
        found = self._log.find(event, stream)
        return found if found is not None and self.read(found - 1, found, 1).num_rows else None
