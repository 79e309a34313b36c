"""RDF text to events and back."""

from triplewire.rdf.parser import decode, decode_addressed
from triplewire.rdf.serializer import encode, encode_addressed, to_nquads, to_ntriples
from triplewire.rdf.syntaxes import (
    JSON_LD,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    SYNTAXES,
    TRIG,
    TURTLE,
    Syntax,
    find_file_syntax,
    find_syntax,
    negotiate,
)
from triplewire.rdf.terms import check_id, new_id

__all__ = [
    "JSON_LD",
    "N_QUADS",
    "N_TRIPLES",
    "RDF_XML",
    "SYNTAXES",
    "TRIG",
    "TURTLE",
    "Syntax",
    "check_id",
    "decode",
    "decode_addressed",
    "encode",
    "encode_addressed",
    "find_file_syntax",
    "find_syntax",
    "negotiate",
    "new_id",
    "to_nquads",
    "to_ntriples",
]
