"""Values: what an expression is while compiling, as SQL for each thing that an operator may ask of it.

Every answer is NULL where the value is an error or has no such thing, so errors flow as SPARQL wants. What there is
of values is in `columns`, `statics` and `computed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from triplewire.sparql.algebra import Family
from triplewire.sparql.compile.sql import Sql, case, negate, null, truth

ANY = frozenset(Family)
NUMERIC = frozenset({Family.EXACT, Family.FLOAT, Family.DOUBLE})
IRI = frozenset({Family.IRI})
NOT_LITERAL = (Family.IRI, Family.BLANK)
STRINGS = (Family.STRING, Family.TAGGED)
TIMES = (Family.DATETIME, Family.DATE)


class Value:
    """An error, and the base of all values: nothing is known and everything that is asked gives NULL."""

    families: frozenset[Family] = frozenset()

    def text(self) -> Sql:
        """The whole term in canonical text."""
        return null()

    def identity(self) -> Sql:
        """A number that is the same for the same term, and quicker to compare."""
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
        return case((self.bound(), negate(self.among(*NOT_LITERAL))))

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


def facet_of(value: Value, name: str) -> Sql:
    """What a column beside the text holds of the value: its `datatype`, `language`, `number` or `time`."""
    made: Mapping[str, Callable[[], Sql]] = {
        "datatype": value.datatype,
        "language": value.language,
        "number": value.number,
        "time": value.time,
    }
    return made[name]()
