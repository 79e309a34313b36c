"""Prologues: what a query says before it asks, read as far as showing its answer needs it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from triplewire.model.terms import RDF, TW, XSD

WELL_KNOWN: Mapping[str, str] = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "sh": "http://www.w3.org/ns/shacl#",
    "prov": "http://www.w3.org/ns/prov#",
    "time": "http://www.w3.org/2006/time#",
    "geo": "http://www.opengis.net/ont/geosparql#",
    "qudt": "http://qudt.org/schema/qudt/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "https://schema.org/",
    "tw": TW,
}

_STEP = re.compile(
    r"""\s+ | \#[^\r\n]* | BASE\s*<[^>]*> | VERSION\s*(?:"[^"]*"|'[^']*')
      | PREFIX\s+(?P<prefix>[^\s:<>]*)\s*:\s*<(?P<address>[^>]*)>""",
    re.VERBOSE | re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+")
_LOCAL = re.compile(r"\w(?:[\w.-]*[\w-])?|")
"""What may stand behind a prefix without escapes."""


@dataclass(frozen=True)
class Prologue:
    """The form of a query in lower case, empty if it cannot be told, and the prefixes to show its answer with."""

    form: str = ""
    prefixes: Mapping[str, str] = field(default_factory=lambda: WELL_KNOWN)

    @property
    def of_graph(self) -> bool:
        """Does the query give triples?"""
        return self.form in ("construct", "describe")

    def short(self, address: str) -> str:
        """The address with the prefix that leaves the least of it, or in brackets if none fits."""
        fits = [
            (len(address) - len(start), f"{prefix}:{address[len(start) :]}")
            for prefix, start in self.prefixes.items()
            if start and address.startswith(start) and _LOCAL.fullmatch(address, len(start))
        ]
        return min(fits)[1] if fits else f"<{address}>"


def prologue(text: str) -> Prologue:
    """The query's own prefixes go before the well-known ones."""
    prefixes = {}
    place = 0
    while step := _STEP.match(text, place):
        if step["address"] is not None:
            prefixes[step["prefix"]] = step["address"]
        place = step.end()
    word = _WORD.match(text, place)
    return Prologue(word[0].lower() if word else "", {**WELL_KNOWN, **prefixes})
