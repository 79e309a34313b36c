"""Values: what an expression is while compiling, as SQL for each thing that an operator may ask of it.

Every answer is NULL where the value is an error or has no such thing, so errors flow as SPARQL wants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from triplewire.model.terms import XSD, XSD_STRING
from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.facets import INTEGERS
from triplewire.sparql.compile.sql import (
    DECIMAL,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    VARCHAR,
    Sql,
    among,
    call,
    case,
    cast,
    column,
    compare,
    concat,
    equal,
    every,
    length,
    negate,
    null,
    number,
    present,
    some,
    text,
    truth,
    try_cast,
)
from triplewire.sparql.compile.statics import Static

ANY = frozenset(Family)
NUMERIC = frozenset({Family.EXACT, Family.FLOAT, Family.DOUBLE})
IRI = frozenset({Family.IRI})

_BOOLEANS = {f'"{lexical}"^^<{XSD}boolean>': lexical in ("true", "1") for lexical in ("true", "false", "1", "0")}
_CHECKED = ("boolean", "decimal", "float", "double", *INTEGERS)
_SHORT_EXACT = 15 + len(f'""^^<{XSD}int>')
"""A numeric term of at most this length has at most 15 digits, which a double holds exactly."""


class Value:
    """An error, and the base of all values: nothing is known and everything that is asked gives NULL."""

    families: frozenset[Family] = frozenset()

    def text(self) -> Sql:
        """The whole term in canonical text; NULL also for values that were computed."""
        return null()

    def string(self) -> Sql:
        """What STR() gives."""
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
        """May the exact value have more digits than a double holds?"""
        return truth(False)

    def time(self) -> Sql:
        return null()

    def zoned(self) -> Sql:
        """Does the date or time name its time zone?"""
        return null()

    def boolean(self) -> Sql:
        return null()

    def bound(self) -> Sql:
        """Is there a value, and no error? Never NULL."""
        return truth(False)

    def literal(self) -> Sql:
        """Is it a literal? NULL for an error."""
        return case((self.bound(), negate(self.among(Family.IRI))))

    def ill_typed(self) -> Sql:
        """Is it a literal that claims to be a number or a boolean and is not?"""
        return truth(False)

    def narrowed(self, *families: Family) -> Value:
        """The same value where it is known to be of one of these families."""
        return self

    def among(self, *families: Family) -> Sql:
        """Is it of one of these families? NULL only for an error."""
        if not self.families:
            return null()
        if self.families <= set(families):
            return truth(True)
        kept = [family for family in Family if family in self.families and family in families]
        return self._test(kept) if kept else truth(False)

    def _test(self, families: list[Family]) -> Sql:
        raise NotImplementedError


@dataclass(frozen=True)
class Stored(Value):
    """A term that a column holds, with its facets in columns beside it.

    For an object of the alias q the column is `object`; for a constant of the alias c it is `k0`.
    """

    alias: str
    name: str
    families: frozenset[Family] = ANY

    def narrowed(self, *families: Family) -> Value:
        return replace(self, families=self.families & set(families))

    def text(self) -> Sql:
        return column(self.alias, self.name)

    def facet(self, name: str) -> Sql:
        return column(self.alias, f"{self.name}_{name}")

    def string(self) -> Sql:
        inner = call("SUBSTRING", self.text(), number(2), exp.Sub(this=length(self.text()), expression=number(2)))
        if self.families == IRI:
            return inner
        if self.families == {Family.STRING}:
            return unescaped(inner)
        return case((self.literal(), unescaped(body(self.text()))), (self.among(Family.IRI), inner))

    def datatype(self) -> Sql:
        if self.families == {Family.STRING}:
            return text(XSD_STRING)
        return null() if self.families == IRI else self.facet("datatype")

    def language(self) -> Sql:
        return self.facet("language") if Family.TAGGED in self.families else null()

    def number(self) -> Sql:
        return self.facet("number") if self.families & NUMERIC else null()

    def exact(self) -> Sql:
        made = try_cast(digits(self.text()), DECIMAL)
        return case((self.among(Family.EXACT), made)) if Family.EXACT in self.families else null()

    def rank(self) -> Sql:
        if not self.families & NUMERIC:
            return null()
        ranks = (("double", 4), ("float", 3), ("decimal", 2))
        typed = [(self._of(name), number(rank)) for name, rank in ranks]
        return self._numbered(case(*typed, default=number(1)))

    def long(self) -> Sql:
        return (
            compare(">", length(self.text()), number(_SHORT_EXACT)) if Family.EXACT in self.families else truth(False)
        )

    def time(self) -> Sql:
        return self.facet("time") if self.families & {Family.DATETIME, Family.DATE} else null()

    def zoned(self) -> Sql:
        forms = ('%Z"^^%', '%+__:__"^^%', '%-__:__"^^%')
        return some(*(exp.Like(this=self.text(), expression=text(form)) for form in forms))

    def boolean(self) -> Sql:
        if Family.BOOLEAN not in self.families:
            return null()
        yes = [term for term, value in _BOOLEANS.items() if value]
        return case((self.among(Family.BOOLEAN), among(self.text(), yes)))

    def bound(self) -> Sql:
        return truth(True)

    def ill_typed(self) -> Sql:
        return every(self.among(Family.OTHER), some(*(self._of(name) for name in _CHECKED)))

    def literal(self) -> Sql:
        if self.families & {Family.IRI, Family.OTHER}:
            return self._starts('"')
        return truth(True)

    def _test(self, families: list[Family]) -> Sql:
        if Family.OTHER in families:
            rest = [family for family in Family if family in self.families and family not in families]
            return negate(self._test(rest))
        return some(*(self._is(family) for family in self._merged(families)))

    def _merged(self, families: list[Family]) -> list[Family | None]:
        """With None for all numeric families together, which are one cheap question."""
        if set(families) >= self.families & NUMERIC and NUMERIC & set(families):
            return [None, *(family for family in families if family not in NUMERIC)]
        return list(families)

    def _is(self, family: Family | None) -> Sql:
        match family:
            case None:
                return present(self.number())
            case Family.IRI:
                return every(self._starts("<"), negate(self._starts("<<")))
            case Family.STRING:
                return every(self._starts('"'), self._ends('"'))
            case Family.TAGGED:
                return every(self._starts('"'), negate(self._ends('"')), negate(self._ends(">")))
            case Family.EXACT:
                return self._with_number(negate(self._of("float")), negate(self._of("double")))
            case Family.FLOAT | Family.DOUBLE:
                return self._with_number(self._of(family.value))
            case Family.BOOLEAN:
                return among(self.text(), tuple(_BOOLEANS))
            case _:
                known = self.families <= {Family.DATETIME, Family.DATE}
                return self._of(family.value) if known else every(present(self.facet("time")), self._of(family.value))

    def _with_number(self, *conditions: Sql) -> Sql:
        return every(*conditions) if self.families <= NUMERIC else every(present(self.number()), *conditions)

    def _numbered(self, value: Sql) -> Sql:
        return value if self.families <= NUMERIC else case((present(self.number()), value))

    def _of(self, name: str) -> Sql:
        """Is it a literal of this type of XML Schema?"""
        return self._ends(f'"^^<{XSD}{name}>')

    def _starts(self, start: str) -> Sql:
        return call("TW_STARTS", self.text(), text(start))

    def _ends(self, end: str) -> Sql:
        return call("TW_ENDS", self.text(), text(end))


@dataclass(frozen=True)
class Named(Value):
    """A term in subject, predicate or graph position: always an IRI."""

    alias: str
    name: str
    families: frozenset[Family] = IRI

    def text(self) -> Sql:
        return column(self.alias, self.name)

    def string(self) -> Sql:
        return call("SUBSTRING", self.text(), number(2), exp.Sub(this=length(self.text()), expression=number(2)))

    def bound(self) -> Sql:
        return truth(True)


class Known(Value):
    """A constant: every answer is a literal of SQL."""

    def __init__(self, static: Static) -> None:
        self.static = static
        self.families = frozenset({static.family})

    def text(self) -> Sql:
        return text(self.static.term)

    def string(self) -> Sql:
        return text(self.static.lexical)

    def datatype(self) -> Sql:
        return text(self.static.datatype) if self.static.datatype else null()

    def language(self) -> Sql:
        return text(self.static.language) if self.static.language else null()

    def number(self) -> Sql:
        return null() if self.static.number is None else double(self.static.number)

    def exact(self) -> Sql:
        return try_cast(text(self.static.lexical), DECIMAL) if self.static.family == Family.EXACT else null()

    def rank(self) -> Sql:
        ranks = {Family.DOUBLE: 4, Family.FLOAT: 3, Family.EXACT: 2 if self.static.datatype == XSD + "decimal" else 1}
        return number(ranks[self.static.family]) if self.static.family in ranks else null()

    def long(self) -> Sql:
        return truth(self.static.family == Family.EXACT and len(self.static.lexical) > 15)

    def time(self) -> Sql:
        return cast(text(self.static.time.isoformat(" ")), TIMESTAMP) if self.static.time else null()

    def zoned(self) -> Sql:
        lexical = self.static.lexical
        return truth(lexical.endswith("Z") or (lexical[-6:-5] in ("+", "-") and lexical[-3:-2] == ":"))

    def boolean(self) -> Sql:
        known = self.static.family == Family.BOOLEAN
        return truth(self.static.lexical in ("true", "1")) if known else null()

    def bound(self) -> Sql:
        return truth(True)

    def ill_typed(self) -> Sql:
        return truth(self.static.family == Family.OTHER and (self.static.datatype or "").removeprefix(XSD) in _CHECKED)


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


def double(value: float) -> Sql:
    return cast(text(repr(value) if abs(value) != float("inf") else "Infinity" if value > 0 else "-Infinity"), DOUBLE)


def floating_text(value: Sql, digits: Sql) -> Sql:
    """A float or double as a string: plain digits from 0.001 to below a million, where all engines write the same.

    Outside of that, where SPARQL wants an exponent and engines differ, it is an error.
    """
    size = exp.Abs(this=value)
    plain = every(compare(">=", size, double(0.001)), compare("<", size, double(1e6)))
    whole = call("SUBSTRING", digits, number(1), exp.Sub(this=length(digits), expression=number(2)))
    return case(
        (exp.IsNan(this=value), text("NaN")),
        (equal(value, double(float("inf"))), text("INF")),
        (equal(value, double(float("-inf"))), text("-INF")),
        (equal(value, double(0.0)), text("0")),
        (plain, case((call("TW_ENDS", digits, text(".0")), whole), default=digits)),
    )


def body(term: Sql) -> Sql:
    """What stands between the quotes of a literal: the last quote is the closing one."""
    suffix = exp.SplitPart(this=term, delimiter=text('"'), part_index=number(-1))
    rest = exp.Sub(this=exp.Sub(this=length(term), expression=length(suffix)), expression=number(2))
    return call("SUBSTRING", term, number(2), rest)


def digits(term: Sql) -> Sql:
    """The same for a number, which holds no escapes."""
    return exp.SplitPart(this=term, delimiter=text('"'), part_index=number(2))


def unescaped(inner: Sql) -> Sql:
    """Most literals hold no escapes; only those that do are decoded."""
    return case((call("TW_CONTAINS", inner, text("\\")), call("TW_UNESCAPE", inner)), default=inner)
