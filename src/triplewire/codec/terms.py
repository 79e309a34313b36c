"""Terms from their parts, checked by the library that reads the data, so that both agree on what a term is."""

from __future__ import annotations

import pyoxigraph as ox


def checked_iri(address: str) -> str:
    """The term of an absolute IRI. Raises ValueError for what is none."""
    return str(ox.NamedNode(address))


def checked_literal(lexical: str, datatype: str | None = None, language: str | None = None) -> str:
    """The term of a literal: a string, of a type, or tagged. Raises ValueError for an address that is no IRI and for a
    tag that is none of BCP 47."""
    if datatype is not None:
        return str(ox.Literal(lexical, datatype=ox.NamedNode(datatype)))
    return str(ox.Literal(lexical, language=language))
