"""Prepared queries: texts that differ only in constants are parsed once.

A text is cut into its skeleton and its constants. For a new skeleton the text is lifted as it is, and again with other
constants of the same kinds in place of its own: constants that come out as constants of the shape, and leave the shape
unchanged, are parameters. All others, such as predicates and regular expressions, belong to the key under which the
shape is cached. A later text with the same key needs no parser: its constants are filled in.

`lift` may look at the family of a constant, and at whether two constants are equal, and at nothing else of them; both
are checked against the cached recipe, and where they differ the text is lifted as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from triplewire.matching.canonical_form import CACHED_SKELETONS, canonical_form
from triplewire.matching.shape_requests import ANY_EVENT, QuerySkeleton, ShapeRequest, cut_request, restrict_query
from triplewire.matching.shapes import LiftedShape, lift
from triplewire.matching.visibility import restrict_to_visible
from triplewire.model.cache import BoundedCache
from triplewire.model.errors import TriplewireError, Unsupported
from triplewire.model.terms import is_iri
from triplewire.sparql import Apply, Const, Family, Node, Pattern, Query, Var, family_of, parse_query
from triplewire.sparql.algebra import Extend, Graph, Group, Reach, Select, Values
from triplewire.sparql.syntax.queries import REMEMBERED_QUERY_CHARACTERS
from triplewire.sparql.traversal import iterate_parts

SKELETON_CHOICES: Final = 4
"""Sets of parameters that are cached for one skeleton: each costs every subscription a look-up."""

SKELETON_HOLES: Final = 32
"""Constants of a text up to which each is tried by itself if all together decide nothing: as many parses."""


def substitute_terms(query: Query, terms: Mapping[str, str]) -> Query:
    """Replace each of these variables by its term; they are no longer in the results. Raises Unsupported if the
    query itself assigns a variable, or if its term cannot stand where the variable does."""
    if not terms:
        return query
    for part in iterate_parts(query):
        for name in _assigned_variables(part):
            if name in terms:
                raise Unsupported(f"${name} where the query gives it a value", hint="a parameter has its value already")
    made: Query = _substitute(query, terms)
    for role, node in (each for part in iterate_parts(made) for each in _resource_nodes(part)):
        if isinstance(node, Const) and not is_iri(node.term):
            raise Unsupported(f"{node.term} as {role}", hint="only an IRI can be one")
    return made


def _assigned_variables(part: object) -> Iterator[str]:
    """The variables that a part of the algebra assigns, or tests by BOUND."""
    match part:
        case Extend(name=name):
            yield name
        case Values(names=names):
            yield from names
        case Group(keys=keys, aggregates=aggregates):
            yield from (name for name, _ in (*keys, *aggregates))
        case Apply("bound", (Var(name),)):
            yield name


def _substitute(part: Any, terms: Mapping[str, str]) -> Any:  # noqa: ANN401 - a part of the algebra, of its own type
    if isinstance(part, Var):
        return Const(terms[part.name]) if part.name in terms else part
    if isinstance(part, tuple):
        return tuple(_substitute(each, terms) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    made = replace(part, **{field.name: _substitute(getattr(part, field.name), terms) for field in fields(part)})
    if isinstance(made, Select | Query):
        return replace(made, projection=tuple(name for name in made.projection if name not in terms))
    return made


def _resource_nodes(part: object) -> Iterator[tuple[str, Node | None]]:
    """The nodes of a part of the algebra that cannot be literals, with their roles."""
    match part:
        case Pattern(subject, predicate, _, graph):
            yield from (("a subject", subject), ("a predicate", predicate), ("a graph", graph))
        case Reach(subject, _, _, graph):
            yield from (("a subject", subject), ("a graph", graph))
        case Graph(name):
            yield "a graph", name


def build_query(asked: ShapeRequest) -> Query:
    """The query of a request, with its event selector. Raises SparqlSyntax or Unsupported."""
    query = asked.query or ANY_EVENT
    if asked.form is not None:
        query = asked.form.query([term for _, term in asked.values])
    elif asked.text is not None:
        query = substitute_terms(parse_query(asked.text), dict(asked.values))
    return restrict_query(query, asked.narrowing, solutions=asked.solutions)


def lift_request(asked: ShapeRequest) -> LiftedShape:
    """Parse a request and lift its constants. Raises SparqlSyntax or Unsupported. Queries that differ only in the
    names of variables and the order of patterns have the same shape."""
    return lift_query_as(build_query(asked), asked)


def lift_query_as(query: Query, asked: ShapeRequest) -> LiftedShape:
    """Lift a query in place of that of the request."""
    query, visibility = restrict_to_visible(query, asked.visibility)
    made = lift(canonical_form(query, solutions=asked.solutions), solutions=asked.solutions)
    return made if visibility is None else replace(made, shape=replace(made.shape, visibility=visibility))


class Parameterized(Protocol):
    """A query without its constants, and the constants."""

    @property
    def shape(self) -> Hashable: ...

    @property
    def constants(self) -> tuple[str, ...]: ...

    def of(self, constants: tuple[str, ...]) -> Self:
        """The same with other constants."""


Made = TypeVar("Made", bound=Parameterized)


@dataclass(frozen=True)
class _Slot:
    """A constant of the shape that is made from a hole of the skeleton; without a hole it is always `before`."""

    hole: int | None
    before: str
    after: str = ""

    def fill(self, cores: Sequence[str]) -> str:
        return self.before if self.hole is None else self.before + cores[self.hole] + self.after


@dataclass(frozen=True)
class _Recipe(Generic[Made]):
    """Makes the lifted query from the constants of a text."""

    real: Made
    slots: tuple[_Slot, ...]
    families: tuple[Family | None, ...]
    """Families of constants whose text does not show their family."""
    equal: tuple[int, ...]
    fixed: frozenset[str]
    """Terms in the shape itself."""

    def fill(self, cores: Sequence[str]) -> Made | None:
        """Fill in constants; None if they are not like those that the recipe was made from."""
        constants = tuple([slot.fill(cores) for slot in self.slots])
        alike = _equal(constants) == self.equal and self.fixed.isdisjoint(constants)
        return self.real.of(constants) if alike and _families(constants) == self.families else None


class PreparedQueries(Generic[Made]):
    """A cache of lifted queries, by skeleton. Thread-safe. `known` tells whether `make` may look at a term with a
    given ending: such a term is not lifted like others."""

    def __init__(
        self,
        make: Callable[[ShapeRequest], Made],
        size: int = CACHED_SKELETONS,
        known: Callable[[str], bool] | None = None,
    ) -> None:
        self._make = make
        self._known = known
        self._lock = Lock()
        self._choices: BoundedCache[Hashable, tuple[tuple[int, ...], ...]] = BoundedCache(size)
        """For each skeleton, the sets of holes that are not parameters."""
        self._recipes: BoundedCache[Hashable, _Recipe[Made]] = BoundedCache(size)

    def lift(self, asked: ShapeRequest) -> Made:
        """The same as `make`, from the cache if possible."""
        if asked.query is not None or _is_unsuitable(asked.text or ""):
            return self._make(asked)
        pieces = cut_request(asked) if self._known is None else cut_request(asked).shutting(self._known)
        recipe = self._look_up(pieces)
        if recipe is None:
            return self._prepare(asked, pieces)
        return recipe.fill(pieces.cores) or self._make(asked)

    def _look_up(self, pieces: QuerySkeleton) -> _Recipe[Made] | None:
        with self._lock:
            for kept in self._choices.get(pieces.skeleton) or ():
                found = self._recipes.get(_key(pieces, kept))
                if found is not None:
                    return found
        return None

    def _prepare(self, asked: ShapeRequest, pieces: QuerySkeleton) -> Made:
        real = self._make(asked)
        found, recipe = _RecipeSearch(self._make, pieces, real).outcome()
        kept = tuple(each for each in range(len(pieces.cores)) if each not in found)
        with self._lock:
            others = [each for each in self._choices.get(pieces.skeleton) or () if each != kept]
            self._choices.put(pieces.skeleton, (kept, *others[: SKELETON_CHOICES - 1]))
            self._recipes.put(_key(pieces, kept), recipe)
        return real


class PreparedShapes(PreparedQueries[LiftedShape]):
    """A cache of the shapes of subscriptions."""

    def __init__(
        self,
        make: Callable[[ShapeRequest], LiftedShape] = lift_request,
        size: int = CACHED_SKELETONS,
        known: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(make, size, known)


@dataclass(frozen=True)
class _RecipeSearch(Generic[Made]):
    """Finds out how the result depends on the holes of a skeleton."""

    make: Callable[[ShapeRequest], Made]
    pieces: QuerySkeleton
    real: Made

    def outcome(self) -> tuple[frozenset[int], _Recipe[Made]]:
        """The holes that can be filled with anything of their kind, all at once, and the recipe."""
        holes = frozenset(self.pieces.open)
        for choice in (self._together, self._alone):
            found = choice(holes) if holes else frozenset()
            recipe = self._recipe(found)
            if found and recipe is not None:
                return found, recipe
        return frozenset(), self._made(tuple(_Slot(None, each) for each in self.real.constants))

    def _together(self, holes: frozenset[int]) -> frozenset[int]:
        """The holes whose change shows in constants when all are changed."""
        changed = self._changed(holes)
        slots = [self._slot(each, holes) for each in changed.constants] if changed else []
        return self._alike(holes, slots)

    def _alone(self, holes: frozenset[int]) -> frozenset[int]:
        """The holes whose change shows in constants, and nowhere else, when each is changed alone."""
        if len(holes) > SKELETON_HOLES:
            return frozenset()
        return frozenset(each for each in holes if self._recipe(frozenset({each})) is not None)

    def _recipe(self, holes: frozenset[int]) -> _Recipe[Made] | None:
        """A recipe for these holes; None if they decide anything but constants, or one of them decides nothing."""
        changed = self._changed(holes)
        if changed is None or changed.shape != self.real.shape:
            return None
        slots = tuple(self._slot(each, holes) for each in changed.constants)
        filled = tuple(slot.fill(self.pieces.cores) for slot in slots)
        return self._made(slots) if self._alike(holes, slots) == holes and filled == self.real.constants else None

    def _made(self, slots: tuple[_Slot, ...]) -> _Recipe[Made]:
        constants = self.real.constants
        fixed = _terms(self.real.shape) if any(slot.hole is not None for slot in slots) else frozenset()
        return _Recipe(self.real, slots, _families(constants), _equal(constants), fixed)

    def _alike(self, holes: frozenset[int], slots: Sequence[_Slot]) -> frozenset[int]:
        """The holes of the slots, and holes with the same content."""
        others = self.pieces.others
        used = {others[slot.hole] for slot in slots if slot.hole is not None}
        return frozenset(each for each in holes if others[each] in used)

    def _changed(self, holes: Collection[int]) -> Made | None:
        try:
            return self.make(self.pieces.changed(holes))
        except TriplewireError:
            return None

    def _slot(self, constant: str, holes: Collection[int]) -> _Slot:
        for hole in sorted(holes):
            before, found, after = constant.partition(self.pieces.others[hole])
            if found and self.pieces.fits(hole, before, after):
                return _Slot(hole, before, after)
        return _Slot(None, constant)


def _key(pieces: QuerySkeleton, kept: Sequence[int]) -> Hashable:
    return pieces.skeleton, kept, tuple([pieces.cores[each] for each in kept]), pieces.equal


def _equal(terms: Sequence[str]) -> tuple[int, ...]:
    """For each item, the first one equal to it; empty if all differ."""
    return () if len(set(terms)) == len(terms) else tuple(map(terms.index, terms))


def _families(constants: Sequence[str]) -> tuple[Family | None, ...]:
    return tuple([_family(each) if each[-1] == ">" and each[0] == '"' else None for each in constants])


_family = lru_cache(maxsize=CACHED_SKELETONS)(family_of)


def _terms(shape: object) -> frozenset[str]:
    found = list(iterate_parts(shape))
    rows = (term for part in found if isinstance(part, Values) for row in part.rows for term in row)
    return frozenset((*(part.term for part in found if isinstance(part, Const)), *(term for term in rows if term)))


def _is_unsuitable(text: str) -> bool:
    """Is a text too long, or may it have escapes that are decoded before tokens are read?"""
    return len(text) > REMEMBERED_QUERY_CHARACTERS or "\\u" in text or "\\U" in text
