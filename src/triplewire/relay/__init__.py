"""Repeaters: streams of edges become streams of other edges, or of the same."""

from triplewire.relay.declarations import Declaration, parse, read
from triplewire.relay.enrichers import Enricher
from triplewire.relay.relays import Relay, enrichers_of
from triplewire.relay.strands import Address, Enrichment, Strand
from triplewire.relay.tallies import Tally

__all__ = [
    "Address",
    "Declaration",
    "Enricher",
    "Enrichment",
    "Relay",
    "Strand",
    "Tally",
    "enrichers_of",
    "parse",
    "read",
]
