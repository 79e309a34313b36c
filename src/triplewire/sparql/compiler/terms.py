"""Terms as values: those that a column of a relation stores, with facets beside it, and constants of the query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from triplewire.model.terms import XSD, XSD_STRING, literal
from triplewire.sparql import sql
from triplewire.sparql.algebra import Family
from triplewire.sparql.compiler.facets import lexical_body, lexical_digits, unescape
from triplewire.sparql.compiler.values import ANY, IRI, NOT_LITERAL, NUMERIC, Value
from triplewire.sparql.constants import BOOLEANS, CHECKED_TYPES, SHORT_EXACT, ConstantTerm
from triplewire.sparql.sql import Sql, call, case, cast, every, negate, null, number, some, text
from triplewire.sparql.statistics import TERM_ID


@dataclass(frozen=True)
class StoredTerm(Value):
    """A term that a column holds, with its facets in columns beside it.

    For an object of the alias q the column is `object`; for a constant of the alias c it is `k0`.
    """

    alias: str
    name: str
    families: frozenset[Family] = ANY
    short: bool = False
    """Whether no exact number in it has more digits than a double holds."""
    certain: bool = True
    """Whether it has a value in every row; otherwise NULL is an unbound variable or an error."""
    always_zoned: bool = False
    """Whether every time in it names its zone."""
    identified: bool = False
    """Its column has one beside it with numbers of terms."""

    def identity(self) -> Sql:
        return self.facet(TERM_ID) if self.identified else null()

    def narrow(self, *families: Family) -> Value:
        return replace(self, families=self.families & set(families))

    def text(self) -> Sql:
        return sql.column(self.alias, self.name)

    def facet(self, name: str) -> Sql:
        return sql.column(self.alias, f"{self.name}_{name}")

    def string(self) -> Sql:
        inner = call("SUBSTRING", self.text(), number(2), exp.Sub(this=sql.length(self.text()), expression=number(2)))
        if self.families == IRI:
            return inner
        if self.families == {Family.STRING}:
            return unescape(inner)
        return case((self.literal(), unescape(lexical_body(self.text()))), (self.among(Family.IRI), inner))

    def datatype(self) -> Sql:
        if self.families == {Family.STRING}:
            return self._surely(text(XSD_STRING))
        return null() if self.families <= set(NOT_LITERAL) else self.facet("datatype")

    def language(self) -> Sql:
        return self.facet("language") if Family.TAGGED in self.families else null()

    def number(self) -> Sql:
        return self.facet("number") if self.families & NUMERIC else null()

    def exact(self) -> Sql:
        made = sql.try_cast(lexical_digits(self.text()), sql.DECIMAL)
        return case((self.among(Family.EXACT), made)) if Family.EXACT in self.families else null()

    def rank(self) -> Sql:
        if not self.families & NUMERIC:
            return null()
        if self.families in ({Family.FLOAT}, {Family.DOUBLE}):
            return number(4 if Family.DOUBLE in self.families else 3)
        ranks = (("double", 4), ("float", 3), ("decimal", 2))
        typed = [(self._of(name), number(rank)) for name, rank in ranks]
        return self._numbered(case(*typed, default=number(1)))

    def long(self) -> Sql:
        if self.short or Family.EXACT not in self.families:
            return sql.truth(False)
        return sql.compare(">", sql.length(self.text()), number(SHORT_EXACT))

    def time(self) -> Sql:
        return self.facet("time") if self.families & {Family.DATETIME, Family.DATE} else null()

    def zoned(self) -> Sql:
        if self.always_zoned:
            return sql.truth(True)
        forms = ('%Z"^^%', '%+__:__"^^%', '%-__:__"^^%')
        return some(*(exp.Like(this=self.text(), expression=text(form)) for form in forms))

    def boolean(self) -> Sql:
        if Family.BOOLEAN not in self.families:
            return null()
        yes = [term for term, value in BOOLEANS.items() if value]
        return case((self.among(Family.BOOLEAN), sql.among(self.text(), yes)))

    def bound(self) -> Sql:
        return sql.truth(True) if self.certain else sql.present(self.text())

    def ill_typed(self) -> Sql:
        return every(self.among(Family.OTHER), some(*(self._of(name) for name in CHECKED_TYPES)))

    def literal(self) -> Sql:
        if self.families & {*NOT_LITERAL, Family.OTHER}:
            return self._starts('"')
        return self._surely(sql.truth(True))

    def _surely(self, known: Sql) -> Sql:
        """Return a fact about every value; NULL where there is none."""
        return known if self.certain else case((self.bound(), known))

    def _test(self, families: list[Family]) -> Sql:
        if Family.OTHER in families:
            known = [family for family in Family if family in self.families and family not in families]
            return self._surely(negate(self._test(known)))
        if set(families) >= set(NOT_LITERAL):
            rest = [self._test(others)] if (others := [each for each in families if each not in NOT_LITERAL]) else []
            return some(every(negate(self._starts('"')), negate(self._starts("<<"))), *rest)
        return some(*(self._is(family) for family in self._merged(families)))

    def _merged(self, families: list[Family]) -> list[Family | None]:
        """Replace all numeric families together by None: they are one cheap test."""
        if set(families) >= self.families & NUMERIC and NUMERIC & set(families):
            return [None, *(family for family in families if family not in NUMERIC)]
        return list(families)

    def _is(self, family: Family | None) -> Sql:
        match family:
            case None:
                return sql.present(self.number())
            case Family.IRI:
                return every(self._starts("<"), negate(self._starts("<<")))
            case Family.BLANK:
                return self._starts("_:")
            case Family.STRING:
                return every(self._starts('"'), self._ends('"'))
            case Family.TAGGED:
                return every(self._starts('"'), negate(self._ends('"')), negate(self._ends(">")))
            case Family.EXACT:
                return self._with_number(negate(self._of("float")), negate(self._of("double")))
            case Family.FLOAT | Family.DOUBLE:
                return self._with_number(self._of(family.value))
            case Family.BOOLEAN:
                return sql.among(self.text(), tuple(BOOLEANS))
            case _:
                known = self.families <= {Family.DATETIME, Family.DATE}
                return (
                    self._of(family.value) if known else every(sql.present(self.facet("time")), self._of(family.value))
                )

    def _with_number(self, *conditions: Sql) -> Sql:
        return every(*conditions) if self.families <= NUMERIC else every(sql.present(self.number()), *conditions)

    def _numbered(self, value: Sql) -> Sql:
        return value if self.families <= NUMERIC else case((sql.present(self.number()), value))

    def _of(self, name: str) -> Sql:
        """Return the condition that it is a literal of this XML Schema type."""
        return self._ends(f'"^^<{XSD}{name}>')

    def _starts(self, start: str) -> Sql:
        return call("TW_STARTS", self.text(), text(start))

    def _ends(self, end: str) -> Sql:
        return call("TW_ENDS", self.text(), text(end))


def needs_exact_comparison(alias: str, name: str) -> Sql:
    """Return the condition that the column holds a number for which comparing doubles is not enough: a float, or one
    with many digits."""
    value = StoredTerm(alias, name, NUMERIC)
    exact = every(value.among(Family.EXACT), value.long())
    return every(sql.present(value.number()), some(value.among(Family.FLOAT), exact))


@dataclass(frozen=True)
class DerivedTerm(StoredTerm):
    """A term that was computed as text, with its facets made when they are asked for."""

    alias: str = ""
    name: str = ""
    certain: bool = False
    made: Sql = field(default_factory=null)
    facet_sql: Callable[[str], Sql] = field(default=lambda _: null())

    def text(self) -> Sql:
        return self.made

    def facet(self, name: str) -> Sql:
        return self.facet_sql(name)


@dataclass(frozen=True)
class StoredNode(Value):
    """A term in subject, predicate or graph position: an IRI, or, if `families` say so, a blank node."""

    alias: str
    name: str
    families: frozenset[Family] = IRI
    identified: bool = False
    """Its column has one beside it with numbers of terms."""

    def text(self) -> Sql:
        return sql.column(self.alias, self.name)

    def identity(self) -> Sql:
        return sql.column(self.alias, f"{self.name}_{TERM_ID}") if self.identified else null()

    def string(self) -> Sql:
        inner = call("SUBSTRING", self.text(), number(2), exp.Sub(this=sql.length(self.text()), expression=number(2)))
        return case((self.among(Family.IRI), inner))

    def bound(self) -> Sql:
        return sql.truth(True)

    def literal(self) -> Sql:
        return sql.truth(False)

    def narrow(self, *families: Family) -> Value:
        return replace(self, families=self.families & set(families))

    def _test(self, families: list[Family]) -> Sql:
        blank = call("TW_STARTS", self.text(), text("_:"))
        return blank if families == [Family.BLANK] else negate(blank)


class ConstantValue(Value):
    """A constant: every property is a literal of SQL."""

    def __init__(self, static: ConstantTerm) -> None:
        self.static = static
        self.families = frozenset({static.family})

    def text(self) -> Sql:
        return text(self.static.term)

    def string(self) -> Sql:
        if self.static.family == Family.BLANK:
            return null()
        if "\0" in self.static.lexical:
            # engines end their text at a zero character
            return call("TW_UNESCAPE", text(literal(self.static.lexical)[1:-1]))
        return text(self.static.lexical)

    def datatype(self) -> Sql:
        return text(self.static.datatype) if self.static.datatype else null()

    def language(self) -> Sql:
        return text(self.static.language) if self.static.language else null()

    def number(self) -> Sql:
        return null() if self.static.number is None else sql.double(self.static.number)

    def exact(self) -> Sql:
        return sql.try_cast(text(self.static.lexical), sql.DECIMAL) if self.static.family == Family.EXACT else null()

    def rank(self) -> Sql:
        ranks = {Family.DOUBLE: 4, Family.FLOAT: 3, Family.EXACT: 2 if self.static.datatype == XSD + "decimal" else 1}
        return number(ranks[self.static.family]) if self.static.family in ranks else null()

    def long(self) -> Sql:
        return sql.truth(self.static.family == Family.EXACT and len(self.static.lexical) > 15)

    def time(self) -> Sql:
        return cast(text(self.static.time.isoformat(" ")), sql.TIMESTAMP) if self.static.time else null()

    def zoned(self) -> Sql:
        lexical = self.static.lexical
        return sql.truth(lexical.endswith("Z") or (lexical[-6:-5] in ("+", "-") and lexical[-3:-2] == ":"))

    def boolean(self) -> Sql:
        known = self.static.family == Family.BOOLEAN
        return sql.truth(self.static.lexical in ("true", "1")) if known else null()

    def bound(self) -> Sql:
        return sql.truth(True)

    def ill_typed(self) -> Sql:
        return sql.truth(
            self.static.family == Family.OTHER and (self.static.datatype or "").removeprefix(XSD) in CHECKED_TYPES
        )
