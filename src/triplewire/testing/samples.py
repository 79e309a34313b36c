"""Sample events: small observations, and a shop with products, offers and reviews like those of the Berlin SPARQL
Benchmark (BSBM), the same each time.

With 666 products there are 250,030 triples, and as many producers, vendors, offers, persons and reviews as in the
benchmark, so that its queries have the same numbers of answers here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from triplewire.model import Event
from triplewire.model.terms import RDF_TYPE, XSD, iri, literal
from triplewire.storage.log.ports import Publication

VOCABULARY = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/"
INSTANCES = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/"
COUNTRIES = "http://downlode.org/rdf/iso-3166/countries#"
REVIEW = "http://purl.org/stuff/rev#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_DUBLIN_CORE = "http://purl.org/dc/elements/1.1/"
_FOAF = "http://xmlns.com/foaf/0.1/"
_LANDS = ("US", "GB", "JP", "CN", "FR", "ES", "RU", "KR", "AT")
_TYPES = 55
_BRANCHES = 6
"""Types right below the root; all others lie below one of these."""
_WHOLE = 666
_WORDS = ("pilaws", "unsaddled", "rewish", "cosmopolite", "muzzle", "dither", "sandal", "quorum", "ostrich", "verbena")

PropertyValue = tuple[str, str]
"""A predicate and an object."""


@dataclass(frozen=True)
class Shop:
    """A shop with a number of products; all else is in proportion except their types."""

    products: int = _WHOLE

    def events(self) -> Iterator[Event]:
        """Yield an event for each entity, with all its triples."""
        kinds = (
            (_TYPES, self._type),
            (self._scale(2_860), self._feature),
            (self._scale(14), self._producer),
            (self.products, self._product),
            (self._scale(8), self._vendor),
            (20 * self.products, self._offer),
            (self._scale(339), self._person),
            (10 * self.products, self._review),
        )
        for count, make in kinds:
            for number in range(1, count + 1):
                subject, properties = make(number)
                lines = (f"{subject}\t{predicate}\t{object_}" for predicate, object_ in properties)
                yield Event(f"urn:shop:{make.__name__[1:]}:{number}", "\n".join(lines))

    def _scale(self, count: int) -> int:
        """Scale a count of the full shop to this one."""
        return max(1, round(count * self.products / _WHOLE))

    def _type(self, number: int) -> tuple[str, list[PropertyValue]]:
        above = [] if number == 1 else [(_rdfs("subClassOf"), _instance("ProductType", _parent(number)))]
        return _instance("ProductType", number), [*_described("ProductType", number), *above, *_published(number)]

    def _feature(self, number: int) -> tuple[str, list[PropertyValue]]:
        return _instance("ProductFeature", number), [*_described("ProductFeature", number), *_published(number)]

    def _producer(self, number: int) -> tuple[str, list[PropertyValue]]:
        return _instance("Producer", number), _business("Producer", number, "DE" if number == 1 else _land(number))

    def _vendor(self, number: int) -> tuple[str, list[PropertyValue]]:
        return _instance("Vendor", number), _business("Vendor", number, "DE" if number == 2 else _land(number))

    def _product(self, number: int) -> tuple[str, list[PropertyValue]]:
        leaf = 2 + _BRANCHES + number % (_TYPES - 1 - _BRANCHES)
        features = 27 + (number <= self._scale(113))
        return _instance("Product", number), [
            *_described("Product", number),
            *((RDF_TYPE, _instance("ProductType", each)) for each in (1, _parent(leaf), leaf)),
            (_term("producer"), _instance("Producer", 1 + number % self._scale(14))),
            *((_term("productFeature"), self._featured(number, each)) for each in range(features)),
            *((_term(f"productPropertyNumeric{each}"), _number(number * each % 2_000)) for each in (1, 2, 3)),
            *((_term(f"productPropertyTextual{each}"), _words(number + each, 8)) for each in (1, 2, 3)),
            *_published(number),
        ]

    def _featured(self, number: int, place: int) -> str:
        return _instance("ProductFeature", 1 + (31 * number + 97 * place) % self._scale(2_860))

    def _offer(self, number: int) -> tuple[str, list[PropertyValue]]:
        price = literal(f"{10 + number * 37 % 9_990}.{number % 100:02}", VOCABULARY + "USD")
        return _instance("Offer", number), [
            (RDF_TYPE, _term("Offer")),
            (_term("product"), _instance("Product", 1 + number % self.products)),
            (_term("vendor"), _instance("Vendor", 1 + number % self._scale(8))),
            (_term("price"), price),
            (_term("validFrom"), _day(number, "dateTime")),
            (_term("validTo"), _day(number + 60, "dateTime")),
            (_term("deliveryDays"), _number(1 + number % 21)),
            (_term("offerWebpage"), iri(f"http://www.vendor{1 + number % self._scale(8)}.com/Offers/Offer{number}")),
            *_published(number),
        ]

    def _person(self, number: int) -> tuple[str, list[PropertyValue]]:
        return _instance("Reviewer", number), [
            (RDF_TYPE, iri(_FOAF + "Person")),
            (iri(_FOAF + "name"), _words(number, 2)),
            (iri(_FOAF + "mbox_sha1sum"), literal(f"{number * 2_654_435_761 % 16**10:040x}")),
            (_term("country"), iri(COUNTRIES + _land(number))),
            *_published(number),
        ]

    def _review(self, number: int) -> tuple[str, list[PropertyValue]]:
        ratings = 2 if number % 5 == 0 else 3
        return _instance("Review", number), [
            (RDF_TYPE, iri(REVIEW + "Review")),
            (_term("reviewFor"), _instance("Product", 1 + number % self.products)),
            (iri(REVIEW + "reviewer"), _instance("Reviewer", 1 + number % self._scale(339))),
            (_term("reviewDate"), _day(number, "dateTime")),
            (iri(_DUBLIN_CORE + "title"), _words(number, 6)),
            (iri(REVIEW + "text"), literal(" ".join(_word(number * each) for each in range(1, 40)), language="en")),
            *((_term(f"rating{each + 1}"), _number(1 + number * (each + 1) % 10)) for each in range(ratings)),
            *_published(number),
        ]


def _parent(number: int) -> int:
    """Return the parent of a type: the root, or one of those right below it."""
    return 1 if number <= 1 + _BRANCHES else 2 + number % _BRANCHES


def _described(kind: str, number: int) -> list[PropertyValue]:
    return [
        (RDF_TYPE, _term(kind)),
        (_rdfs("label"), _words(number, 3)),
        (_rdfs("comment"), _words(number + 7, 12)),
    ]


def _business(kind: str, number: int, land: str) -> list[PropertyValue]:
    home = iri(f"http://www.{kind}{number}.com/")
    place = (_term("country"), iri(COUNTRIES + land))
    return [*_described(kind, number), (iri(_FOAF + "homepage"), home), place, *_published(number)]


def _published(number: int) -> list[PropertyValue]:
    publisher = iri(f"{INSTANCES}Publisher{1 + number % 5}")
    return [(iri(_DUBLIN_CORE + "publisher"), publisher), (iri(_DUBLIN_CORE + "date"), _day(number, "date"))]


def _day(number: int, datatype: str) -> str:
    day = (date(2008, 1, 1) + timedelta(days=number % 365)).isoformat()
    return literal(day if datatype == "date" else f"{day}T00:00:00", XSD + datatype)


def _instance(kind: str, number: int) -> str:
    return iri(f"{INSTANCES}{kind}{number}")


def _term(name: str) -> str:
    return iri(VOCABULARY + name)


def _rdfs(name: str) -> str:
    return iri(_RDFS + name)


def _number(value: int) -> str:
    return literal(str(value), XSD + "integer")


def _word(number: int) -> str:
    return _WORDS[number % len(_WORDS)]


def _words(number: int, count: int) -> str:
    return literal(" ".join(f"{_word(number + place)}{number}" for place in range(count)))


def _land(number: int) -> str:
    return _LANDS[number % len(_LANDS)]


EXAMPLE = "http://example.org/"


def event(number: int, value: float | None = None) -> Event:
    """Return a small observation that is unique by its number."""
    subject = iri(f"{EXAMPLE}observation/{number}")
    result = literal(str(number if value is None else value), XSD + "double")
    quads = (
        (subject, RDF_TYPE, iri(f"{EXAMPLE}Observation")),
        (subject, iri(f"{EXAMPLE}result"), result),
    )
    return Event(f"{EXAMPLE}event/{number}", "\n".join("\t".join(quad) for quad in quads))


def publication(*numbers: int, stream: str = "test") -> Publication:
    """Return a publication of the events of these numbers."""
    return Publication(stream, [event(number) for number in numbers])
