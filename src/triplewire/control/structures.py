"""Structures: unbounded queries taken apart. Those that differ only in constants are parsed once."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.errors import Unsupported
from triplewire.matching.cuts import Asked
from triplewire.matching.texts import Recipes
from triplewire.ongoing.structures import Lifted, Structure, lift, structure_of
from triplewire.sparql.registrations import parse_registration
from triplewire.sparql.syntax.tokens import Source

_HINT = "without windows a query is triple patterns and filters; within a window it is more"
_BEYOND = frozenset(
    (
        *("OPTIONAL", "UNION", "MINUS", "EXISTS", "GRAPH", "SERVICE", "VALUES", "BIND", "FROM", "DESCRIBE", "REDUCED"),
        *("GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"),
        *("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT"),
    )
)
_OF_PATHS = frozenset("/|*+?^!")


@dataclass(frozen=True)
class Taken:
    """A query without its constants, of a form: `select`, `ask` or `construct`; and these."""

    shape: tuple[str, Structure]
    constants: tuple[str, ...]

    @property
    def form(self) -> str:
        return self.shape[0]

    @property
    def lifted(self) -> Lifted:
        return Lifted(self.shape[1], self.constants)

    def of(self, constants: tuple[str, ...]) -> Taken:
        return Taken(self.shape, constants)


class Structures:
    """Remembers how texts are taken apart. Any thread may use it."""

    def __init__(self) -> None:
        self._recipes = Recipes(_taken)

    def take(self, text: str) -> Taken:
        """A query without windows. Raises SparqlSyntax, or Unsupported with what is too much and its place."""
        return self._recipes.lift(Asked(text, solutions=True))


def _taken(asked: Asked) -> Taken:
    text = asked.text or ""
    query = parse_registration(text).query
    try:
        structure = structure_of(query, distinct=False)
    except Unsupported as error:
        raise (error if error.place is not None else _placed(text, error)) from None
    if any(each.graph is not None for each in structure.patterns):
        raise _placed(text, Unsupported("GRAPH", hint=_HINT))
    lifted = lift(structure)
    return Taken((query.form, lifted.structure), lifted.constants)


def _placed(text: str, error: Unsupported) -> Unsupported:
    """The first word of a text that asks for more than there is without windows."""
    source, within = Source(text), 0
    for token in source.tokens():
        within += {"{": 1, "}": -1}.get(token.key, 0)
        word = token.key in _BEYOND or (token.key == "SELECT" and within > 0)
        if word or (within > 0 and token.key in _OF_PATHS):
            construct = token.key if word else "a property path"
            excerpt = source.excerpt(token.offset)
            return Unsupported(construct, place=source.place(token.offset), hint=_HINT, excerpt=excerpt)
    return error
