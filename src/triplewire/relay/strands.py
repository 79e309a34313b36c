"""Strands: one stream of one edge that becomes a stream of another, or of the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson


@dataclass(frozen=True)
class Address:
    """A stream at an edge."""

    edge: str
    """Its address, without a slash at the end."""
    stream: str

    def __str__(self) -> str:
        return f"{self.edge}/streams/{self.stream}"


@dataclass(frozen=True)
class Enrichment:
    """The name of an enricher, and what the file says to it."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Strand:
    """What a relay carries by itself: a rule of its file that joins or splits is several of them.

    `filters` are parameters of the address, by which the edge above picks events; several values of one are repeated.
    """

    source: Address
    target: Address
    filters: tuple[tuple[str, str], ...] = ()
    enrichments: tuple[Enrichment, ...] = ()
    after: str = "earliest"

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def whole(self) -> bool:
        """Whether the target has all that the source has: who listens to one may as well listen to the other."""
        return not self.filters and not self.enrichments

    @property
    def key(self) -> str:
        """By which it is known again after a restart. What is carried makes it, not where the carrying began."""
        said = [str(self.source), str(self.target), sorted(self.filters)]
        return sha256(orjson.dumps(said)).hexdigest()[:16]
