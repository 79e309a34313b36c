"""Computed values: the results of functions and operators, and the headers of events."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from triplewire.model.terms import XSD, XSD_STRING
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.lexicals import floating_text
from triplewire.sparql.compile.sql import (
    FLOAT,
    VARCHAR,
    Sql,
    call,
    case,
    cast,
    compare,
    concat,
    equal,
    negate,
    number,
    present,
    text,
    truth,
    try_cast,
)
from triplewire.sparql.compile.values import IRI, NUMERIC, Value


@dataclass(frozen=True)
class Truth(Value):
    """A boolean that was computed."""

    condition: Sql
    families: frozenset[Family] = frozenset({Family.BOOLEAN})

    def string(self) -> Sql:
        return case((self.condition, text("true")), (negate(self.condition), text("false")))

    def datatype(self) -> Sql:
        return case((present(self.condition), text(XSD + "boolean")))

    def boolean(self) -> Sql:
        return self.condition

    def bound(self) -> Sql:
        return present(self.condition)


@dataclass(frozen=True)
class Number(Value):
    """A number that was computed; `made_exact` is NULL where the rank is above 2."""

    made_rank: Sql
    made_exact: Sql
    made_number: Sql
    families: frozenset[Family] = NUMERIC

    def number(self) -> Sql:
        return self.made_number

    def exact(self) -> Sql:
        return self.made_exact

    def rank(self) -> Sql:
        return self.made_rank

    def long(self) -> Sql:
        return truth(Family.EXACT in self.families)

    def datatype(self) -> Sql:
        names = ((1, "integer"), (2, "decimal"), (3, "float"), (4, "double"))
        typed = [(equal(self.made_rank, number(rank)), text(XSD + name)) for rank, name in names]
        return case((self.bound(), case(*typed)))

    def string(self) -> Sql:
        exact = compare("<=", self.made_rank, number(2))
        single = cast(try_cast(self.made_number, FLOAT), VARCHAR)
        return case(
            (exact, call("TW_DECIMAL_TEXT", self.made_exact)),
            (equal(self.made_rank, number(3)), floating_text(self.made_number, single)),
            default=floating_text(self.made_number, cast(self.made_number, VARCHAR)),
        )

    def bound(self) -> Sql:
        return present(self.made_number)

    def _test(self, families: list[Family]) -> Sql:
        ranks = {Family.EXACT: (1, 2), Family.FLOAT: (3,), Family.DOUBLE: (4,)}
        kept = [number(rank) for family in families for rank in ranks[family]]
        return exp.In(this=self.made_rank, expressions=kept)


@dataclass(frozen=True)
class Text(Value):
    """A string without tag that was computed."""

    value: Sql
    families: frozenset[Family] = frozenset({Family.STRING})

    def string(self) -> Sql:
        return self.value

    def datatype(self) -> Sql:
        return case((self.bound(), text(XSD_STRING)))

    def bound(self) -> Sql:
        return present(self.value)


@dataclass(frozen=True)
class Address(Value):
    """An IRI that was computed, given without its brackets."""

    value: Sql
    families: frozenset[Family] = IRI

    def text(self) -> Sql:
        return concat(text("<"), self.value, text(">"))

    def string(self) -> Sql:
        return self.value

    def bound(self) -> Sql:
        return present(self.value)


@dataclass(frozen=True)
class Metadata(Value):
    """A header of an event as a plain string: stream, source or application. It holds nothing to escape."""

    value: Sql
    families: frozenset[Family] = frozenset({Family.STRING})

    def text(self) -> Sql:
        return concat(text('"'), self.value, text('"'))

    def string(self) -> Sql:
        return self.value

    def datatype(self) -> Sql:
        return text(XSD_STRING)

    def bound(self) -> Sql:
        return truth(True)


@dataclass(frozen=True)
class Moment(Value):
    """A time of an event, as an xsd:dateTime in UTC."""

    value: Sql
    families: frozenset[Family] = frozenset({Family.DATETIME})

    def text(self) -> Sql:
        return concat(text('"'), self.string(), text(f'"^^<{XSD}dateTime>'))

    def string(self) -> Sql:
        return concat(call("REPLACE", cast(self.value, VARCHAR), text(" "), text("T")), text("Z"))

    def datatype(self) -> Sql:
        return text(XSD + "dateTime")

    def time(self) -> Sql:
        return self.value

    def zoned(self) -> Sql:
        return truth(True)

    def bound(self) -> Sql:
        return truth(True)
