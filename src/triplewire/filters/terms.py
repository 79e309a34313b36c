"""Terms of a filter: JSON values as RDF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from triplewire.codec.terms import checked_iri, checked_literal
from triplewire.filters.relations import Operand
from triplewire.model.errors import InvalidField
from triplewire.model.terms import XSD, is_literal
from triplewire.sparql import Family, family_of

_FORMS = 'a string, a number, true, false, {"@id": …} or {"@value": …} with "@type" or "@language"'

_FAMILIES: Mapping[Operand, frozenset[Family]] = {
    Operand.ORDERED: frozenset(
        {Family.EXACT, Family.FLOAT, Family.DOUBLE, Family.STRING, Family.DATETIME, Family.DATE},
    ),
    Operand.TEXT: frozenset({Family.STRING, Family.TAGGED}),
    Operand.NAME: frozenset({Family.IRI}),
}


@dataclass(frozen=True)
class Terms:
    """Reads values with the prefixes that were declared. `field` in what it raises is the place of the value."""

    prefixes: Mapping[str, str] = field(default_factory=dict)

    def name(self, value: object, place: str) -> str:
        """An IRI, written out or with a prefix; also in the form of `{"@id": …}`. Raises Unfit."""
        if isinstance(value, dict) and set(value) == {"@id"}:
            value = value["@id"]
        if not isinstance(value, str):
            raise InvalidField(place, f"{place} must be an IRI, not {value!r}")
        prefix, colon, local = value.partition(":")
        try:
            return checked_iri(self.prefixes[prefix] + local if colon and prefix in self.prefixes else value)
        except ValueError:
            hint = f"; there is no prefix {prefix!r}" if colon and "/" not in value else ""
            raise InvalidField(place, f"{place}: {value!r} is no absolute IRI{hint}") from None

    def operand(self, value: object, kind: Operand, place: str) -> tuple[str, ...]:
        """What a relation takes, of its kind. Raises Unfit."""
        if kind is Operand.FACT:
            return self._fact(value, place)
        term = self._named(value, place) if kind is Operand.NAME else self._term(value, place)
        if kind is not Operand.TERM and family_of(term) not in _FAMILIES[kind]:
            raise InvalidField(place, f"{place} must be {kind.value}, not {term}")
        return (term,)

    def _fact(self, value: object, place: str) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) != 2:
            raise InvalidField(place, f"{place} must be {Operand.FACT.value}, not {value!r}")
        return self.name(value[0], f"{place}[0]"), self._named(value[1], f"{place}[1]")

    def _named(self, value: object, place: str) -> str:
        """Where names are usual, a string is one."""
        return self.name(value, place) if isinstance(value, str) else self._term(value, place)

    def _term(self, value: object, place: str) -> str:
        match value:
            case bool():
                return checked_literal(str(value).lower(), XSD + "boolean")
            case int():
                return checked_literal(str(value), XSD + "integer")
            case float():
                return checked_literal(repr(value), XSD + "double")
            case str():
                return checked_literal(value)
            case {"@id": address, **others} if not others:
                return self.name(address, place)
            case {"@value": str(lexical), **others}:
                return self._literal(lexical, others, place)
        raise InvalidField(place, f"{place} must be {_FORMS}, not {value!r}")

    def _literal(self, lexical: str, others: Mapping[object, object], place: str) -> str:
        match others:
            case {"@type": type_, **rest} if not rest:
                datatype = self.name(type_, f"{place}.@type")
                return self._checked(lambda: checked_literal(lexical, datatype[1:-1]), place)
            case {"@language": str(tag), **rest} if not rest:
                return self._checked(lambda: checked_literal(lexical, language=tag), place)
        if others:
            raise InvalidField(place, f"{place} must be {_FORMS}, not one with {', '.join(map(str, others))}")
        return checked_literal(lexical)

    def _checked(self, make: Callable[[], str], place: str) -> str:
        try:
            term = make()
        except ValueError as error:
            raise InvalidField(place, f"{place}: {error}") from None
        assert is_literal(term)
        return term
