"""RDF text to events and back."""

from triplewire.codec.ids import check_id, new_id
from triplewire.codec.readers import decode, decode_addressed
from triplewire.codec.syntaxes import (
    JSON_LD,
    N_QUADS,
    N_TRIPLES,
    RDF_XML,
    SYNTAXES,
    TRIG,
    TURTLE,
    Syntax,
    negotiate,
    syntax_of,
    syntax_of_file,
)
from triplewire.codec.writers import encode, encode_addressed, nquads, ntriples

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
    "negotiate",
    "new_id",
    "nquads",
    "ntriples",
    "syntax_of",
    "syntax_of_file",
]
