"""Stream profiles, as JSON and as datasets in DCAT 3 and VoID, limited to what the client may see.

Counts of predicates and classes come from a sample, the newest page of a stream: some hundred events tell what a
stream is about, while a scan of all events would cost more each day.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from threading import Lock
from typing import Any, Final

from triplewire.history.dataset_statistics import SAMPLE_TERMS, DatasetStatistics
from triplewire.http.delivery.options import FORMATS
from triplewire.http.dialects.ldes import format_duration
from triplewire.model.cache import BoundedCache
from triplewire.model.clock import Clock, format_timestamp
from triplewire.model.terms import RDF_TYPE, XSD, iri, is_iri, literal
from triplewire.rdf.serializer import expand_name
from triplewire.security import Visibility
from triplewire.storage.log.ports import SegmentedLog, StreamVolume
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.streams import (
    NO_DESCRIPTION,
    StreamDescription,
    ValidationMode,
    read_description,
    read_validation_mode,
)

SAMPLE_SECONDS: Final = 60.0
"""Seconds for which a sample of a stream is cached: it costs some 10 ms to take."""

SAMPLES: Final = 1_000
"""Cached samples, one for each stream and visibility: some 10 MB."""


_NAMESPACE = re.compile(r"<(.*[#/:])[^#/:]*>")
NewestEvents = Callable[[str, Visibility | None], Iterable[Mapping[str, Any]]]
"""Reads the newest events of a stream, as far as they are visible."""


@dataclass(frozen=True)
class StreamSample:
    """Counts over some events. Predicates and classes are terms, the most frequent first."""

    events: int = 0
    triples: int = 0
    subjects: int = 0
    predicates: tuple[tuple[str, int], ...] = ()
    classes: tuple[tuple[str, int], ...] = ()

    @property
    def vocabularies(self) -> list[str]:
        """The namespaces of predicates and classes."""
        found = (_NAMESPACE.fullmatch(term) for term, _ in (*self.predicates, *self.classes))
        return sorted({each[1] for each in found if each})


def count_sample(texts: Iterable[str]) -> StreamSample:
    """Count the triples in the texts of events."""
    events, triples, subjects = 0, 0, set[str]()
    predicates, classes = Counter[str](), Counter[str]()
    for text in texts:
        events += 1
        for line in text.split("\n"):
            subject, predicate, object_ = line.split("\t")
            triples += 1
            subjects.add(subject)
            predicates[predicate] += 1
            if predicate == RDF_TYPE:
                classes[object_] += 1
    return StreamSample(events, triples, len(subjects), _most_frequent(predicates), _most_frequent(classes))


def _most_frequent(counted: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counted.items(), key=lambda each: (-each[1], each[0]))[:SAMPLE_TERMS])


class SampleCache:
    """Samples of streams, cached for some seconds, so that erased events are not counted for longer. Any thread may use
    it."""

    def __init__(self, rows: NewestEvents, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._known: BoundedCache[tuple[str, Visibility | None], tuple[float, StreamSample]] = BoundedCache(SAMPLES)
        self._lock = Lock()

    def find(self, stream: str, visible: Visibility | None) -> StreamSample:
        key, now = (stream, visible), self._clock.ticks()
        with self._lock:
            known = self._known.get(key)
        if known is not None and now - known[0] < SAMPLE_SECONDS:
            return known[1]
        sample = count_sample(row["text"] for row in self._rows(stream, visible))
        with self._lock:
            self._known.put(key, (now, sample))
        return sample


@dataclass(frozen=True)
class StreamProfile:
    """A stream. Counts are None for principals that do not see all of its events whole."""

    stream: str
    about: StreamDescription = NO_DESCRIPTION
    volume: StreamVolume | None = None
    rate: float | None = None
    """Recent events per second."""
    age: float | None = None
    """Retention of events in seconds."""
    sample: StreamSample | None = None
    shapes: ValidationMode | None = None
    """The mode of validation, if it has shapes."""

    @property
    def title(self) -> str:
        return self.about.title or self.stream


@dataclass(frozen=True)
class StreamProfiles:
    """Profiles of streams. Each takes some milliseconds; any thread may use it."""

    log: SegmentedLog
    registry: Registry
    samples: SampleCache
    ages: Callable[[str], float | None]
    clock: Clock

    def page(self, after: str, limit: int, visible: Visibility | None) -> tuple[list[StreamProfile], str | None]:
        """Profiles of visible streams after a name, and the name after which the next page begins."""
        found: list[StreamProfile] = []
        while len(found) < limit:
            volumes = self.log.volumes(after, limit)
            seen = [each for each in volumes if visible is None or each.stream in visible.streams][: limit - len(found)]
            found += [self._make(each.stream, each, visible) for each in seen]
            if len(volumes) < limit and (not volumes or not seen or seen[-1] is volumes[-1]):
                return found, None
            after = seen[-1].stream if len(found) == limit else volumes[-1].stream
        return found, after

    def find(self, stream: str, visible: Visibility | None) -> StreamProfile | None:
        """None for a stream without events and description."""
        volume, about = self.log.volume(stream), read_description(self.registry, stream)
        if (volume is None and about == NO_DESCRIPTION) or (visible is not None and stream not in visible.streams):
            return None
        return self._make(stream, volume, visible)

    def _make(self, stream: str, volume: StreamVolume | None, visible: Visibility | None) -> StreamProfile:
        plain = StreamProfile(
            stream,
            read_description(self.registry, stream),
            age=self.ages(stream),
            shapes=read_validation_mode(self.registry, stream),
        )
        if volume is None:
            return plain
        sampled = replace(plain, sample=self.samples.find(stream, visible))
        if visible is not None and not visible.leaves_streams:
            return sampled
        return replace(sampled, volume=volume, rate=self._rate(volume))

    def _rate(self, volume: StreamVolume) -> float:
        """The rate over the newest page, and the one before if that has just begun."""
        leaves = [*self.log.segments(volume.stream, [volume.closed - 1]), *([volume.open] if volume.open else [])]
        seconds = max(self.clock.now() - leaves[0].since, 1_000_000) / 1_000_000
        return round(sum(each.events for each in leaves) / seconds, 3)


def profile_document(profile: StreamProfile, base: str) -> dict[str, Any]:
    about, volume, sample, address = profile.about, profile.volume, profile.sample, f"{base}/streams/{profile.stream}"
    said = {name: value for name, value in asdict(about).items() if value}
    found: dict[str, Any] = {"stream": profile.stream, **said, "title": profile.title}
    if volume is not None:
        counted = {"events": volume.events, "bytes": volume.size, "rate": profile.rate}
        found |= counted | {"since": format_timestamp(volume.since), "until": format_timestamp(volume.until)}
    found["kept"] = None if profile.age is None else format_duration(profile.age)
    if sample is not None:
        counts = {"events": sample.events, "triples": sample.triples, "subjects": sample.subjects}
        terms = {"predicates": _without_brackets(sample.predicates), "classes": _without_brackets(sample.classes)}
        found |= {"vocabularies": sample.vocabularies, "sample": counts | terms}
    if profile.shapes is not None:
        found["shapes"] = {"url": f"{address}/shapes", "mode": profile.shapes.value}
    listening = {each.name: {"type": each.media_type, "url": f"{address}?format={each.name}"} for each in FORMATS}
    return found | {"url": address, "about": f"{address}/about", "history": f"{address}/ldes", "listen": listening}


def _without_brackets(counted: tuple[tuple[str, int], ...]) -> dict[str, int]:
    return {term.removeprefix("<").removesuffix(">"): count for term, count in counted}


_IANA = "https://www.iana.org/assignments/media-types/"
_LDES = "https://w3id.org/ldes/specification"


def write_triple(subject: str, predicate: str, obj: str) -> str:
    return f"{subject} {predicate if predicate == RDF_TYPE else expand_name(predicate)} {obj} .\n"


def write_catalog(base: str, profiles: Iterable[StreamProfile]) -> Iterator[str]:
    """Write the catalog of all streams."""
    here, query = iri(f"{base}/streams"), iri(f"{base}/sparql")
    yield write_triple(here, RDF_TYPE, expand_name("dcat:Catalog"))
    yield write_triple(here, "dcterms:title", literal("Streams of events"))
    yield write_triple(here, "dcterms:description", literal("The streams of this edge, and how to subscribe to them"))
    yield write_triple(here, "dcat:service", query)
    yield from write_service(query, "SPARQL over all events", f"{base}/sparql")
    for profile in profiles:
        yield write_triple(here, "dcat:dataset", iri(f"{base}/streams/{profile.stream}"))
        yield write_triple(query, "dcat:servesDataset", iri(f"{base}/streams/{profile.stream}"))
        yield from write_dataset(base, profile)


def write_service(name: str, title: str, address: str) -> Iterator[str]:
    yield write_triple(name, RDF_TYPE, expand_name("dcat:DataService"))
    yield write_triple(name, "dcterms:title", literal(title))
    yield write_triple(name, "dcat:endpointURL", iri(address))


def write_dataset(base: str, profile: StreamProfile) -> Iterator[str]:
    """Write the dataset of one stream."""
    address = f"{base}/streams/{profile.stream}"
    here, about = iri(address), profile.about
    for kind in ("dcat:Dataset", "ldes:EventStream"):
        yield write_triple(here, RDF_TYPE, expand_name(kind))
    yield write_triple(here, "dcterms:title", literal(profile.title))
    yield write_triple(
        here, "dcterms:description", literal(about.description or f"Events of the stream {profile.stream}")
    )
    yield write_triple(here, "dcterms:identifier", literal(profile.stream))
    yield write_triple(here, "dcat:landingPage", iri(f"{address}/about"))
    if about.licence is not None:
        yield write_triple(here, "dcterms:license", iri(about.licence))
    yield from (write_triple(here, "dcat:keyword", literal(each)) for each in about.keywords)
    if profile.volume is not None:
        yield write_triple(here, "dcterms:issued", _time(profile.volume.since))
        yield write_triple(here, "dcterms:modified", _time(profile.volume.until))
        yield write_triple(here, "tw:events", literal(str(profile.volume.events), XSD + "integer"))
    if profile.rate is not None:
        yield write_triple(here, "tw:rate", literal(f"{profile.rate:.3f}", XSD + "decimal"))
    if profile.age is not None:
        yield write_triple(here, "tw:kept", literal(format_duration(profile.age), XSD + "duration"))
    if profile.shapes is not None:
        yield write_triple(here, "dcterms:conformsTo", iri(f"{address}/shapes"))
    yield from _write_distributions(address)
    if profile.sample is not None:
        yield from _write_sample(here, iri(f"{address}/about#sample"), profile.sample)


def _write_distributions(address: str) -> Iterator[str]:
    """The ways in which a stream can be heard, and read."""
    stream, history = iri(address), iri(f"{address}/ldes")
    yield write_triple(stream, "tree:view", history)
    yield from _write_distribution(stream, f"{address}#ldes", "History, as linked pages", history, "application/trig")
    yield write_triple(iri(f"{address}#ldes"), "dcterms:conformsTo", iri(_LDES))
    for each in FORMATS:
        title, type = f"As it comes: {each.name}", each.media_type.partition(";")[0]
        yield from _write_distribution(
            stream, f"{address}#{each.name}", title, iri(f"{address}?format={each.name}"), type
        )


def _write_distribution(stream: str, address: str, title: str, access: str, type: str) -> Iterator[str]:
    here = iri(address)
    yield write_triple(stream, "dcat:distribution", here)
    yield write_triple(here, RDF_TYPE, expand_name("dcat:Distribution"))
    yield write_triple(here, "dcterms:title", literal(title))
    yield write_triple(here, "dcat:accessURL", access)
    yield write_triple(here, "dcat:mediaType", iri(_IANA + type))


def _write_sample(stream: str, here: str, sample: StreamSample) -> Iterator[str]:
    """Write the statistics of a sample, as a subset of the dataset."""
    yield write_triple(stream, "void:subset", here)
    yield write_triple(here, RDF_TYPE, expand_name("void:Dataset"))
    yield write_triple(here, "dcterms:title", literal(f"The newest {sample.events} events"))
    yield write_triple(here, "void:triples", _count(sample.triples))
    yield write_triple(here, "void:distinctSubjects", _count(sample.subjects))
    yield from (write_triple(stream, "void:vocabulary", iri(each)) for each in sample.vocabularies)
    for number, (name, count) in enumerate(sample.predicates):
        yield from _write_partition(here, f"_:{_label(here)}p{number}", "property", name, count)
    for number, (name, count) in enumerate(sample.classes):
        if is_iri(name):
            yield from _write_partition(here, f"_:{_label(here)}c{number}", "class", name, count)


def write_void(base: str, statistics: DatasetStatistics | None) -> Iterator[str]:
    """Write the dataset of all events. Counts are for principals that see everything."""
    here = iri(f"{base}/.well-known/void#all")
    yield write_triple(here, RDF_TYPE, expand_name("void:Dataset"))
    yield write_triple(here, "dcterms:title", literal("All events"))
    yield write_triple(here, "void:sparqlEndpoint", iri(f"{base}/sparql"))
    yield write_triple(here, "void:rootResource", iri(f"{base}/streams"))
    if statistics is None:
        return
    yield write_triple(here, "void:triples", _count(statistics.triples))
    if statistics.predicates:
        yield write_triple(here, "void:properties", _count(statistics.properties))
        yield write_triple(here, "void:distinctSubjects", _count(statistics.subjects))
    for number, (name, count) in enumerate(statistics.predicates):
        yield from _write_partition(here, f"_:p{number}", "property", name, count)


def _write_partition(whole: str, here: str, kind: str, name: str, count: int) -> Iterator[str]:
    yield write_triple(whole, f"void:{kind}Partition", here)
    yield write_triple(here, f"void:{kind}", name)
    yield write_triple(here, "void:triples" if kind == "property" else "void:entities", _count(count))


def _label(address: str) -> str:
    """A blank node label for an IRI."""
    return "".join(each if each.isalnum() and each.isascii() else f"x{ord(each):x}x" for each in address[1:-1])


def _count(number: int) -> str:
    return literal(str(number), XSD + "integer")


def _time(microseconds: int) -> str:
    return literal(format_timestamp(microseconds), XSD + "dateTime")
