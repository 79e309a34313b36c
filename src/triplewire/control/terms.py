"""Terms: what JSON gives for a parameter, as the term that it means."""

from __future__ import annotations

from triplewire.model.errors import InputError
from triplewire.model.terms import XSD, is_iri, is_literal, literal, parse_literal
from triplewire.sparql import Family, family_of
from triplewire.sparql.syntax.queries import parse_term

TERM, IRI, LITERAL = "term", "iri", "literal"
_NUMBERS = ("integer", "decimal", "double")
DATATYPES = ("string", *_NUMBERS, "boolean", "dateTime", "date")
TYPES = (TERM, IRI, LITERAL, *DATATYPES)

_MEANT = "an IRI in angle brackets, a literal in quotes, a number, true or false"


def term_of(value: object, type: str = TERM) -> str:
    """The term that a value means where one of a type is wanted. Raises ValueError for a value that is none.

    A text that begins with `<` or a quote is a term as N-Triples writes it. Any other is the address of an IRI where
    one is wanted, and the text of a literal where its datatype is known.
    """
    term = _written(value, type) if isinstance(value, str) else _plain(value, type)
    if not _is(term, type):
        raise ValueError(f"{value!r} is no {type}")
    return term


def _written(text: str, type: str) -> str:
    if text[:1] in ("<", '"', "'"):
        return _parsed(text)
    if type == IRI:
        return _parsed(f"<{text}>")
    if type in DATATYPES:
        return literal(text, XSD + type)
    raise ValueError(f"{text!r} is no term: {_MEANT} is one")


def _parsed(text: str) -> str:
    try:
        return parse_term(text)
    except InputError as error:
        raise ValueError(f"{text!r} is no term: {error}") from None


def _plain(value: object, type: str) -> str:
    if isinstance(value, bool):
        return literal("true" if value else "false", XSD + "boolean")
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no term: {_MEANT} is one")
    text = repr(value)
    if type in _NUMBERS and not (type == "decimal" and "e" in text):
        return literal(text, XSD + type)
    return literal(text, XSD + ("integer" if isinstance(value, int) else "double" if "e" in text else "decimal"))


def _is(term: str, type: str) -> bool:
    if type in (TERM, IRI):
        return type == TERM or is_iri(term)
    if not is_literal(term):
        return False
    return type == LITERAL or (parse_literal(term).datatype == XSD + type and family_of(term) is not Family.OTHER)
