"""Structures: unbounded queries taken apart. Those that differ only in constants are parsed once."""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.continuous.join_network.layout import SLOTS
from triplewire.continuous.structures import LiftedStructure, QueryStructure, lift_constants, query_structure
from triplewire.matching.prepared_queries import PreparedQueries
from triplewire.matching.shape_requests import ShapeRequest
from triplewire.model.errors import Unsupported
from triplewire.sparql.conjunctions import Bind
from triplewire.sparql.rspql import parse_registration
from triplewire.sparql.syntax.lexer import SourceText
from triplewire.sparql.traversal import pattern_variables


@dataclass(frozen=True)
class Taken:
    """A query without its constants, of a form: `select`, `ask` or `construct`; and these."""

    shape: tuple[str, QueryStructure]
    constants: tuple[str, ...]

    @property
    def form(self) -> str:
        return self.shape[0]

    @property
    def lifted(self) -> LiftedStructure:
        return LiftedStructure(self.shape[1], self.constants)

    def of(self, constants: tuple[str, ...]) -> Taken:
        return Taken(self.shape, constants)


class Structures:
    """Remembers how texts are taken apart. Any thread may use it."""

    def __init__(self) -> None:
        self._recipes = PreparedQueries(_taken)

    def take(self, text: str) -> Taken:
        """A query without windows. Raises SparqlSyntax, or Unsupported with what is too much and its place."""
        return self._recipes.lift(ShapeRequest(text, solutions=True))


def _taken(asked: ShapeRequest) -> Taken:
    text = asked.text or ""
    registration = parse_registration(text)
    query = registration.query
    lifted = lift_constants(query_structure(registration, distinct=False))
    _check(text, query.form, lifted)
    return Taken((query.form, lifted.structure), lifted.constants)


def _check(text: str, form: str, lifted: LiftedStructure) -> None:
    """Raises Unsupported for a name of nothing, and for more than a combination of triples can hold."""
    structure = lifted.structure
    if form == "construct" and not structure.template:
        raise _named(text, "construct", "it makes nothing")
    matched = frozenset().union(*(pattern_variables(each) for each in structure.patterns))
    bound = matched | {each.name for each in structure.steps if isinstance(each, Bind)}
    told = (*structure.projection, *(name for each in structure.template for name in pattern_variables(each)))
    for name in told:
        if name not in bound and not name.startswith("_:"):
            raise _named(text, f"?{name}", "it stands in no pattern, so that it never is anything")
    held = len(matched) + len(lifted.constants)
    if held > SLOTS:
        raise Unsupported(f"more than {SLOTS} variables and constants ({held})", hint="ask for less at once")


def _named(text: str, word: str, hint: str) -> Unsupported:
    """A word of the text, with its place."""
    source = SourceText(text)
    known = (each for each in source.tokens() if each.text.lower().lstrip("?$") == word.lower().lstrip("?"))
    offset = next((each.offset for each in known), 0)
    construct = word.upper() if word.isalpha() else word
    return Unsupported(construct, place=source.place(offset), hint=hint, excerpt=source.excerpt(offset))
