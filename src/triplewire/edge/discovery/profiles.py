"""Profiles: what there is to know of a stream, as somebody sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from triplewire.access import Sight
from triplewire.edge.discovery.samples import Sample, Samples
from triplewire.edge.formats.choices import FORMATS
from triplewire.edge.ldes.statements import duration
from triplewire.model.clock import Clock
from triplewire.rdf.headers import format_time
from triplewire.storage.log.ports import SegmentedLog, StreamVolume
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.streams import (
    NO_DESCRIPTION,
    StreamDescription,
    ValidationMode,
    read_description,
    read_validation_mode,
)


@dataclass(frozen=True)
class Profile:
    """One stream. Counts are None for those who see only some of its events, or of these only parts."""

    stream: str
    about: StreamDescription = NO_DESCRIPTION
    volume: StreamVolume | None = None
    rate: float | None = None
    """Events a second, of late."""
    age: float | None = None
    """For how many seconds events are kept."""
    sample: Sample | None = None
    shapes: ValidationMode | None = None
    """What becomes of events that do not conform to its shapes, where it has some."""

    @property
    def title(self) -> str:
        return self.about.title or self.stream


@dataclass(frozen=True)
class Profiles:
    """Of all streams. Any thread may ask; it may take some milliseconds for each."""

    log: SegmentedLog
    registry: Registry
    samples: Samples
    ages: Callable[[str], float | None]
    clock: Clock

    def page(self, after: str, limit: int, sight: Sight | None) -> tuple[list[Profile], str | None]:
        """Of streams after a name that are in sight, and the name after which others follow."""
        found: list[Profile] = []
        while len(found) < limit:
            volumes = self.log.volumes(after, limit)
            seen = [each for each in volumes if sight is None or each.stream in sight.streams][: limit - len(found)]
            found += [self._made(each.stream, each, sight) for each in seen]
            if len(volumes) < limit and (not volumes or not seen or seen[-1] is volumes[-1]):
                return found, None
            after = seen[-1].stream if len(found) == limit else volumes[-1].stream
        return found, after

    def of(self, stream: str, sight: Sight | None) -> Profile | None:
        """None where nothing was ever published to it, and nothing is said about it."""
        volume, about = self.log.volume(stream), read_description(self.registry, stream)
        if (volume is None and about == NO_DESCRIPTION) or (sight is not None and stream not in sight.streams):
            return None
        return self._made(stream, volume, sight)

    def _made(self, stream: str, volume: StreamVolume | None, sight: Sight | None) -> Profile:
        plain = Profile(
            stream,
            read_description(self.registry, stream),
            age=self.ages(stream),
            shapes=read_validation_mode(self.registry, stream),
        )
        if volume is None:
            return plain
        sampled = replace(plain, sample=self.samples.of(stream, sight))
        if sight is not None and not sight.leaves_streams:
            return sampled
        return replace(sampled, volume=volume, rate=self._rate(volume))

    def _rate(self, volume: StreamVolume) -> float:
        """Of the newest page, and of the one before where that has just begun."""
        leaves = [*self.log.leaves(volume.stream, [volume.closed - 1]), *([volume.open] if volume.open else [])]
        seconds = max(self.clock.now() - leaves[0].since, 1_000_000) / 1_000_000
        return round(sum(each.events for each in leaves) / seconds, 3)


def told(profile: Profile, base: str) -> dict[str, Any]:
    """As JSON."""
    about, volume, sample, address = profile.about, profile.volume, profile.sample, f"{base}/streams/{profile.stream}"
    said = {name: value for name, value in asdict(about).items() if value}
    found: dict[str, Any] = {"stream": profile.stream, **said, "title": profile.title}
    if volume is not None:
        counted = {"events": volume.events, "bytes": volume.size, "rate": profile.rate}
        found |= counted | {"since": format_time(volume.since), "until": format_time(volume.until)}
    found["kept"] = None if profile.age is None else duration(profile.age)
    if sample is not None:
        counts = {"events": sample.events, "triples": sample.triples, "subjects": sample.subjects}
        terms = {"predicates": _plain(sample.predicates), "classes": _plain(sample.classes)}
        found |= {"vocabularies": sample.vocabularies, "sample": counts | terms}
    if profile.shapes is not None:
        found["shapes"] = {"url": f"{address}/shapes", "mode": profile.shapes.value}
    listening = {each.name: {"type": each.media_type, "url": f"{address}?format={each.name}"} for each in FORMATS}
    return found | {"url": address, "about": f"{address}/about", "history": f"{address}/ldes", "listen": listening}


def _plain(counted: tuple[tuple[str, int], ...]) -> dict[str, int]:
    return {term.removeprefix("<").removesuffix(">"): count for term, count in counted}
