"""Sights over files: relations that have what is in sight and nothing else, in the place of `quads` and `events`.

A query is compiled as for everybody, and then reads these. So whatever it does, counts and paths and what is not there
included, it does to what is in sight.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from triplewire.access import Sight
from triplewire.query.views import HEADERS
from triplewire.sparql import Compiled, Dialect, to_sql
from triplewire.sparql.compile.readings import readings
from triplewire.sparql.compile.sights import (
    end_is_hidden,
    event_in_sight,
    instances,
    quad_in_sight,
    sight_bounds,
)
from triplewire.sparql.compile.sql import column, equal, every, number
from triplewire.sparql.readings import Reading

_ROW = "w"
"""The alias of a stored row."""


@dataclass(frozen=True)
class Seen:
    """What somebody sees, for one engine. `hidden` names the relation of instances out of sight, if there are any."""

    sight: Sight
    dialect: Dialect
    hidden: str | None = None

    def quads(self, stored: str) -> str:
        """Of a relation that stands in FROM, all quads in sight."""
        return f"SELECT {_ROW}.* FROM {self._seen_of(stored)}"

    def events(self, stored: str, whole: str) -> str:
        """Of a relation, the headers of all events in sight; `whole` has all quads of these, wherever they lie."""
        first = every(equal(column(_ROW, "quad"), number(0)), event_in_sight(self.sight, _ROW))
        found = f"SELECT {HEADERS} FROM {stored} AS {_ROW} WHERE {to_sql(first, self.dialect)}"
        if self.sight.leaves_events:
            return found
        return f"{found} AND position IN (SELECT {_ROW}.position FROM {self._seen_of(whole)})"

    def _seen_of(self, stored: str) -> str:
        """What stands in FROM, and the condition."""
        joins = "".join(self._without(end) for end in ("subject", "object")) if self.hidden else ""
        return f"{stored} AS {_ROW}{joins} WHERE {to_sql(quad_in_sight(self.sight, _ROW), self.dialect)}"

    def _without(self, end: str) -> str:
        hidden = f"{_ROW}_{end}"
        return f" ANTI JOIN {self.hidden} AS {hidden} ON {to_sql(end_is_hidden(_ROW, end, hidden), self.dialect)}"


def narrowed(compiled: Compiled, sight: Sight) -> Compiled:
    """The query, with what the sight says of the rows that its scans can use."""
    return replace(compiled, readings=tuple(_narrowed(each, sight) for each in compiled.readings))


def _narrowed(reading: Reading, sight: Sight) -> Reading:
    known = tuple(sight_bounds(sight, reading.relation))
    return replace(reading, ways=tuple((*way, *known) for way in reading.ways)) if known else reading


def hiding(sight: Sight, dialect: Dialect) -> Compiled | None:
    """The query for instances out of sight; None where no class is."""
    found = instances(sight)
    if found is None:
        return None
    return Compiled("select", (), to_sql(found, dialect), readings=readings((found,)))


def whole(sight: Sight) -> Reading:
    """All quads that may be in sight, as a scan."""
    return Reading("quads", "whole", (tuple(sight_bounds(sight, "quads")),))
