"""Catalogues: streams as datasets, in the words of DCAT 3 and VoID."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from triplewire.edge.discovery.profiles import Profile
from triplewire.edge.discovery.samples import Sample
from triplewire.edge.formats.choices import FORMATS
from triplewire.edge.ldes.statements import duration
from triplewire.history.dataset_statistics import DatasetStatistics
from triplewire.model.terms import RDF_TYPE, XSD, iri, is_iri, literal
from triplewire.rdf.headers import format_time
from triplewire.rdf.serializer import expand_name

_IANA = "https://www.iana.org/assignments/media-types/"
_LDES = "https://w3id.org/ldes/specification"


def line(subject: str, predicate: str, obj: str) -> str:
    return f"{subject} {predicate if predicate == RDF_TYPE else expand_name(predicate)} {obj} .\n"


def catalogue(base: str, profiles: Iterable[Profile]) -> Iterator[str]:
    """Of all that is offered here."""
    here, query = iri(f"{base}/streams"), iri(f"{base}/sparql")
    yield line(here, RDF_TYPE, expand_name("dcat:Catalog"))
    yield line(here, "dcterms:title", literal("Streams of events"))
    yield line(here, "dcterms:description", literal("What is published here, and how to listen to it"))
    yield line(here, "dcat:service", query)
    yield from service(query, "SPARQL over what was published", f"{base}/sparql")
    for profile in profiles:
        yield line(here, "dcat:dataset", iri(f"{base}/streams/{profile.stream}"))
        yield line(query, "dcat:servesDataset", iri(f"{base}/streams/{profile.stream}"))
        yield from dataset(base, profile)


def service(name: str, title: str, address: str) -> Iterator[str]:
    yield line(name, RDF_TYPE, expand_name("dcat:DataService"))
    yield line(name, "dcterms:title", literal(title))
    yield line(name, "dcat:endpointURL", iri(address))


def dataset(base: str, profile: Profile) -> Iterator[str]:
    """Of one stream."""
    address = f"{base}/streams/{profile.stream}"
    here, about = iri(address), profile.about
    for kind in ("dcat:Dataset", "ldes:EventStream"):
        yield line(here, RDF_TYPE, expand_name(kind))
    yield line(here, "dcterms:title", literal(profile.title))
    yield line(here, "dcterms:description", literal(about.description or f"Events of the stream {profile.stream}"))
    yield line(here, "dcterms:identifier", literal(profile.stream))
    yield line(here, "dcat:landingPage", iri(f"{address}/about"))
    if about.licence is not None:
        yield line(here, "dcterms:license", iri(about.licence))
    yield from (line(here, "dcat:keyword", literal(each)) for each in about.keywords)
    if profile.volume is not None:
        yield line(here, "dcterms:issued", _time(profile.volume.since))
        yield line(here, "dcterms:modified", _time(profile.volume.until))
        yield line(here, "tw:events", literal(str(profile.volume.events), XSD + "integer"))
    if profile.rate is not None:
        yield line(here, "tw:rate", literal(f"{profile.rate:.3f}", XSD + "decimal"))
    if profile.age is not None:
        yield line(here, "tw:kept", literal(duration(profile.age), XSD + "duration"))
    if profile.shapes is not None:
        yield line(here, "dcterms:conformsTo", iri(f"{address}/shapes"))
    yield from _distributions(address)
    if profile.sample is not None:
        yield from _sample(here, iri(f"{address}/about#sample"), profile.sample)


def _distributions(address: str) -> Iterator[str]:
    """The ways in which a stream can be heard, and read."""
    stream, history = iri(address), iri(f"{address}/ldes")
    yield line(stream, "tree:view", history)
    yield from _distribution(stream, f"{address}#ldes", "History, as linked pages", history, "application/trig")
    yield line(iri(f"{address}#ldes"), "dcterms:conformsTo", iri(_LDES))
    for each in FORMATS:
        title, type = f"As it comes: {each.name}", each.media_type.partition(";")[0]
        yield from _distribution(stream, f"{address}#{each.name}", title, iri(f"{address}?format={each.name}"), type)


def _distribution(stream: str, address: str, title: str, access: str, type: str) -> Iterator[str]:
    here = iri(address)
    yield line(stream, "dcat:distribution", here)
    yield line(here, RDF_TYPE, expand_name("dcat:Distribution"))
    yield line(here, "dcterms:title", literal(title))
    yield line(here, "dcat:accessURL", access)
    yield line(here, "dcat:mediaType", iri(_IANA + type))


def _sample(stream: str, here: str, sample: Sample) -> Iterator[str]:
    """Of some events: it says so, and is a subset."""
    yield line(stream, "void:subset", here)
    yield line(here, RDF_TYPE, expand_name("void:Dataset"))
    yield line(here, "dcterms:title", literal(f"The newest {sample.events} events"))
    yield line(here, "void:triples", _count(sample.triples))
    yield line(here, "void:distinctSubjects", _count(sample.subjects))
    yield from (line(stream, "void:vocabulary", iri(each)) for each in sample.vocabularies)
    for number, (name, count) in enumerate(sample.predicates):
        yield from _partition(here, f"_:{_label(here)}p{number}", "property", name, count)
    for number, (name, count) in enumerate(sample.classes):
        if is_iri(name):
            yield from _partition(here, f"_:{_label(here)}c{number}", "class", name, count)


def whole(base: str, census: DatasetStatistics | None) -> Iterator[str]:
    """Of everything together. Counts are told to those who see everything."""
    here = iri(f"{base}/.well-known/void#all")
    yield line(here, RDF_TYPE, expand_name("void:Dataset"))
    yield line(here, "dcterms:title", literal("All that was published"))
    yield line(here, "void:sparqlEndpoint", iri(f"{base}/sparql"))
    yield line(here, "void:rootResource", iri(f"{base}/streams"))
    if census is None:
        return
    yield line(here, "void:triples", _count(census.triples))
    if census.predicates:
        yield line(here, "void:properties", _count(census.properties))
        yield line(here, "void:distinctSubjects", _count(census.subjects))
    for number, (name, count) in enumerate(census.predicates):
        yield from _partition(here, f"_:p{number}", "property", name, count)


def _partition(whole: str, here: str, kind: str, name: str, count: int) -> Iterator[str]:
    yield line(whole, f"void:{kind}Partition", here)
    yield line(here, f"void:{kind}", name)
    yield line(here, "void:triples" if kind == "property" else "void:entities", _count(count))


def _label(address: str) -> str:
    """Letters and digits that stand for an address."""
    return "".join(each if each.isalnum() and each.isascii() else f"x{ord(each):x}x" for each in address[1:-1])


def _count(number: int) -> str:
    return literal(str(number), XSD + "integer")


def _time(microseconds: int) -> str:
    return literal(format_time(microseconds), XSD + "dateTime")
