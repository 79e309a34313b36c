"""Plans: what of the publications that come is stored, and where the rest is already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat

from triplewire.log.names import Name
from triplewire.log.ports import Places, Publication
from triplewire.model import Event


@dataclass(frozen=True)
class Known:
    """What a log has of the publications that come: the positions of their keys, and of events that have the ids of
    theirs, with their texts."""

    keys: Mapping[str, range] = field(default_factory=dict)
    events: Mapping[Name, tuple[int, str]] = field(default_factory=dict)


@dataclass
class Plan:
    """One pass over publications, in order. Positions of what is new are below zero until it is known where they
    begin: -1 is the first, -2 the next."""

    fresh: list[tuple[str, Event]] = field(default_factory=list)
    """What is to be stored, with its streams."""
    keys: dict[str, range] = field(default_factory=dict)
    """Of publications with a key that are new, the places in `fresh`."""
    names: list[Name | None] = field(default_factory=list)
    """Of what is to be stored, those by which it will be known."""
    _answers: list[Sequence[int]] = field(default_factory=list)

    def positions(self, start: int) -> list[Sequence[int]]:
        """What each publication is told, when what is new begins at `start`."""
        return [_moved(answer, start) for answer in self._answers]


def plan(publications: Iterable[Publication], known: Known) -> Plan:
    made, keys, events = Plan(), dict(known.keys), dict(known.events)
    for publication in publications:
        answer: Sequence[int] | None = None if publication.key is None else keys.get(publication.key)
        if answer is None:
            before = len(made.fresh)
            answer = _taken(publication, made, events)
            if publication.key is not None and (new := range(before, len(made.fresh))):
                made.keys[publication.key] = new
                keys[publication.key] = range(-1 - before, -1 - len(made.fresh), -1)
        made._answers.append(answer)
    return made


def named(publications: Iterable[Publication]) -> list[Name]:
    """The names by which events of these may be known already."""
    return [
        (stream, event.id)
        for publication in publications
        if publication.given
        for stream, event in streams_of(publication)
        if event.id in publication.given
    ]


def streams_of(publication: Publication) -> Iterator[tuple[str, Event]]:
    streams = repeat(publication.stream) if isinstance(publication.stream, str) else publication.stream
    return zip(streams, publication.events, strict=False)


def _taken(publication: Publication, made: Plan, events: MutableMapping[Name, tuple[int, str]]) -> Sequence[int]:
    before, given = len(made.fresh), publication.given
    if not given:
        made.fresh += streams_of(publication)
        made.names += [None] * (len(made.fresh) - before)
        return range(-1 - before, -1 - len(made.fresh), -1)
    names = [(stream, event.id) if event.id in given else None for stream, event in streams_of(publication)]
    there = [events.get(name) if name else None for name in names]
    pairs = list(zip(publication.events, there, strict=True))
    others = {event.id: found[0] for event, found in pairs if found and found[1] != event.text}
    if others and not publication.apart:
        return Places(others.values(), others=others)
    if not any(there) and len(set(names)) == len(names):
        made.fresh += streams_of(publication)
        made.names += names
        new: Sequence[int] = range(-1 - before, -1 - len(made.fresh), -1)
        events.update(_entered(names, publication.events, new))
        return new
    return _mixed(publication, names, made, events, others)


def _mixed(
    publication: Publication,
    names: Sequence[Name | None],
    made: Plan,
    events: MutableMapping[Name, tuple[int, str]],
    others: Mapping[str, int],
) -> Places:
    found, repeated = list[int](), 0
    for (stream, event), name in zip(streams_of(publication), names, strict=True):
        known = events.get(name) if name else None
        repeated += known is not None and event.id not in others
        if known is None:
            made.fresh.append((stream, event))
            made.names.append(name)
            events.update(_entered([name], [event], [-len(made.fresh)]))
        found.append(-len(made.fresh) if known is None else known[0])
    return Places(found, repeated, others)


def _entered(
    names: Sequence[Name | None], events: Sequence[Event], positions: Sequence[int]
) -> Iterator[tuple[Name, tuple[int, str]]]:
    for name, event, position in zip(names, events, positions, strict=True):
        if name is not None:
            yield name, (position, event.text)


def _moved(answer: Sequence[int], start: int) -> Sequence[int]:
    if isinstance(answer, range):
        return range(start - 1 - answer.start, start - 1 - answer.stop) if answer.step < 0 else answer
    assert isinstance(answer, Places)
    return answer.moved(start)
