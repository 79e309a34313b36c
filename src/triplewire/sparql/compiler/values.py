"""Values: an expression at compile time, as SQL for each property that an operator may ask of it.

Every property is NULL where the value is an error or lacks it, so errors propagate as SPARQL demands. `Value` is the
interface; the classes here are results of functions and the headers of events. Terms of columns and constants are in
`terms`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from triplewire.model.terms import RDF_LANG_STRING, XSD, XSD_STRING
from triplewire.sparql import sql
from triplewire.sparql.algebra import Family
from triplewire.sparql.sql import Sql, call, case, cast, is_null, negate, null, number, text

ANY = frozenset(Family)
NUMERIC = frozenset({Family.EXACT, Family.FLOAT, Family.DOUBLE})
IRI = frozenset({Family.IRI})
NOT_LITERAL = (Family.IRI, Family.BLANK)
STRINGS = (Family.STRING, Family.TAGGED)
TIMES = (Family.DATETIME, Family.DATE)


class Value:
    """The base of all values, and the value of an error: every property is NULL."""

    families: frozenset[Family] = frozenset()

    def text(self) -> Sql:
        """The whole term in canonical text."""
        return null()

    def identity(self) -> Sql:
        """A number that is the same for the same term, and quicker to compare."""
        return null()

    def string(self) -> Sql:
        """The result of STR()."""
        return null()

    def datatype(self) -> Sql:
        return null()

    def language(self) -> Sql:
        """The tag of a tagged literal."""
        return null()

    def number(self) -> Sql:
        """The value of a numeric literal as a double."""
        return null()

    def exact(self) -> Sql:
        """The value of an integer or decimal as a DECIMAL."""
        return null()

    def rank(self) -> Sql:
        """1 to 4 for integer, decimal, float, double."""
        return null()

    def long(self) -> Sql:
        """Whether the exact value may have more digits than a double holds."""
        return sql.truth(False)

    def time(self) -> Sql:
        return null()

    def zoned(self) -> Sql:
        """Whether the date or time names its time zone."""
        return null()

    def boolean(self) -> Sql:
        return null()

    def bound(self) -> Sql:
        """Whether there is a value and no error. Never NULL."""
        return sql.truth(False)

    def literal(self) -> Sql:
        """Whether it is a literal. NULL for an error."""
        return case((self.bound(), negate(self.among(*NOT_LITERAL))))

    def ill_typed(self) -> Sql:
        """Whether it is a literal with a numeric or boolean datatype that its text does not fit."""
        return sql.truth(False)

    def narrow(self, *families: Family) -> Value:
        """The same value where it is known to be of one of these families."""
        return self

    def among(self, *families: Family) -> Sql:
        """Whether it is of one of these families. NULL only for an error."""
        if not self.families:
            return null()
        if self.families <= set(families):
            return sql.truth(True)
        kept = [family for family in Family if family in self.families and family in families]
        return self._test(kept) if kept else sql.truth(False)

    def _test(self, families: list[Family]) -> Sql:
        raise NotImplementedError


def facet_of(value: Value, name: str) -> Sql:
    """Return a facet of the value: `datatype`, `language`, `number` or `time`."""
    facet: Sql = getattr(value, name)()
    return facet


_RANKS = {
    4: ("double", Family.DOUBLE),
    3: ("float", Family.FLOAT),
    2: ("decimal", Family.EXACT),
    1: ("integer", Family.EXACT),
}


def typed_literal(lexical: Sql, datatype: str) -> Sql:
    """The text of a literal whose lexical form holds nothing to escape."""
    return null() if is_null(lexical) else sql.concat(text('"'), lexical, text(f'"^^<{datatype}>'))


@dataclass(frozen=True)
class ComputedBoolean(Value):
    condition: Sql
    families: frozenset[Family] = frozenset({Family.BOOLEAN})

    def text(self) -> Sql:
        return typed_literal(self.string(), XSD + "boolean")

    def string(self) -> Sql:
        return case((self.condition, text("true")), (negate(self.condition), text("false")))

    def datatype(self) -> Sql:
        return case((sql.present(self.condition), text(XSD + "boolean")))

    def boolean(self) -> Sql:
        return self.condition

    def bound(self) -> Sql:
        return sql.present(self.condition)


@dataclass(frozen=True)
class ComputedNumber(Value):
    """A number that was computed; `exact_sql` is NULL where the rank is above 2."""

    rank_sql: Sql
    exact_sql: Sql
    number_sql: Sql
    families: frozenset[Family] = NUMERIC

    def number(self) -> Sql:
        return self.number_sql

    def exact(self) -> Sql:
        return self.exact_sql

    def rank(self) -> Sql:
        return self.rank_sql

    def long(self) -> Sql:
        return sql.truth(Family.EXACT in self.families)

    def text(self) -> Sql:
        if is_null(self.number_sql):
            return null()
        return sql.concat(text('"'), self.string(), self._by_rank(lambda name: text(f'"^^<{XSD}{name}>')))

    def datatype(self) -> Sql:
        return case((self.bound(), self._by_rank(lambda name: text(XSD + name))))

    def string(self) -> Sql:
        return self._by_rank(self._digits)

    def _digits(self, name: str) -> Sql:
        match name:
            case "double":
                return call("TW_DOUBLE_TEXT", self.number_sql)
            case "float":
                return call("TW_FLOAT_TEXT", self.number_sql)
        return call("TW_DECIMAL_TEXT", self.exact_sql)

    def _by_rank(self, make: Callable[[str], Sql]) -> Sql:
        """Select by rank what `make` returns for the type's name."""
        ranks = {rank: make(name) for rank, (name, family) in _RANKS.items() if family in self.families}
        return sql.select_by(self.rank_sql, ranks)

    def bound(self) -> Sql:
        return sql.present(self.number_sql)

    def _test(self, families: list[Family]) -> Sql:
        ranks = {Family.EXACT: (1, 2), Family.FLOAT: (3,), Family.DOUBLE: (4,)}
        kept = [number(rank) for family in families for rank in ranks[family]]
        return exp.In(this=self.rank_sql, expressions=kept)


@dataclass(frozen=True)
class ComputedString(Value):
    """A string that was computed. `tag` is its language, NULL where it has none."""

    value: Sql
    families: frozenset[Family] = frozenset({Family.STRING})
    tag: Sql = field(default_factory=null)

    def text(self) -> Sql:
        if is_null(self.value):
            return null()
        quoted = sql.concat(text('"'), call("TW_ESCAPE", self.value), text('"'))
        return (
            quoted if is_null(self.tag) else sql.concat(quoted, sql.coalesce(sql.concat(text("@"), self.tag), text("")))
        )

    def string(self) -> Sql:
        return self.value

    def datatype(self) -> Sql:
        plain = text(XSD_STRING)
        kind = plain if is_null(self.tag) else case((sql.present(self.tag), text(RDF_LANG_STRING)), default=plain)
        return case((self.bound(), kind))

    def language(self) -> Sql:
        return self.tag

    def bound(self) -> Sql:
        return sql.present(self.value)

    def _test(self, families: list[Family]) -> Sql:
        tagged = sql.present(self.tag)
        return case((self.bound(), tagged if families == [Family.TAGGED] else negate(tagged)))


def tagged_string(value: Sql, tag: Sql) -> ComputedString:
    """A string in the language of the tag, or without one where that is NULL."""
    return (
        ComputedString(value) if is_null(tag) else ComputedString(value, frozenset({Family.STRING, Family.TAGGED}), tag)
    )


@dataclass(frozen=True)
class ComputedBlank(Value):
    """A blank node that was made, given without its `_:`."""

    label: Sql
    families: frozenset[Family] = frozenset({Family.BLANK})

    def text(self) -> Sql:
        return sql.concat(text("_:"), self.label)

    def bound(self) -> Sql:
        return sql.present(self.label)


@dataclass(frozen=True)
class ComputedIri(Value):
    """An IRI that was computed, given without its brackets."""

    value: Sql
    families: frozenset[Family] = IRI

    def text(self) -> Sql:
        return null() if is_null(self.value) else sql.concat(text("<"), self.value, text(">"))

    def string(self) -> Sql:
        return self.value

    def bound(self) -> Sql:
        return sql.present(self.value)


def header_value(alias: str, name: str) -> Value:
    """Return the value of an event's header, which is a column of this name."""
    header = sql.column(alias, name)
    return HeaderTime(header) if name in ("time", "received") else HeaderText(header)


@dataclass(frozen=True)
class HeaderText(Value):
    """A header of an event as a plain string: stream, source or application. It holds nothing to escape."""

    value: Sql
    families: frozenset[Family] = frozenset({Family.STRING})

    def text(self) -> Sql:
        return sql.concat(text('"'), self.value, text('"'))

    def string(self) -> Sql:
        return self.value

    def datatype(self) -> Sql:
        return text(XSD_STRING)

    def bound(self) -> Sql:
        return sql.truth(True)


@dataclass(frozen=True)
class HeaderTime(Value):
    """A time of an event, as an xsd:dateTime in UTC."""

    value: Sql
    families: frozenset[Family] = frozenset({Family.DATETIME})

    def text(self) -> Sql:
        return sql.concat(text('"'), self.string(), text(f'"^^<{XSD}dateTime>'))

    def string(self) -> Sql:
        return sql.concat(call("REPLACE", cast(self.value, sql.VARCHAR), text(" "), text("T")), text("Z"))

    def datatype(self) -> Sql:
        return text(XSD + "dateTime")

    def time(self) -> Sql:
        return self.value

    def zoned(self) -> Sql:
        return sql.truth(True)

    def bound(self) -> Sql:
        return sql.truth(True)
