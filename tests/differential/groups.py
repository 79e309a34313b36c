"""Groups: what stands in braces, with the variables that it has in scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tests.differential import selections, vocabulary
from tests.differential.expressions import RESOURCE_NAMES, VALUE_NAMES, VARIABLES, anything, conditions
from tests.differential.paths import Path, chains, paths, solid_paths
from tests.differential.trees import Block, Reach, Tree, Within


@dataclass(frozen=True)
class Place:
    """Where a group stands.

    Inside of EXISTS there is no BIND, MINUS or sub-query: what they do with variables that have a value outside is
    open, as the specification has them replaced by their values.
    """

    depth: int
    exists: bool = False
    anchored: bool = True
    """Do the patterns see the whole of the data?"""
    conjunctive: bool = False
    """Is nothing there but patterns, groups and what is computed of each solution?"""

    def inner(self) -> Place:
        return replace(self, depth=self.depth - 1)


@dataclass(frozen=True)
class Part:
    tree: Tree
    names: frozenset[str] = frozenset()


Parts: TypeAlias = st.SearchStrategy[Part]
Kind: TypeAlias = Callable[[Place, frozenset[str]], Parts]

_resources = st.sampled_from((*RESOURCE_NAMES * 3, "_:b", *vocabulary.RESOURCES[:2]))
_values = st.sampled_from((*VALUE_NAMES, *VALUE_NAMES, *VALUE_NAMES, "_:e", vocabulary.INTEGERS[1]))
_triples = st.one_of(
    st.tuples(_resources, st.sampled_from(vocabulary.LINKS), _resources),
    st.tuples(_resources, st.just(vocabulary.VALUE), _values),
    st.tuples(_resources, st.sampled_from(("?r", "?r", "?c")), st.one_of(_values, _resources)),
)


def _named(*nodes: str) -> frozenset[str]:
    return frozenset(node for node in nodes if node.startswith("?"))


def _block(triples: list[tuple[str, str, str]]) -> Part:
    text = " . ".join(map(" ".join, triples)) + " ."
    if "?" not in text:
        text = text.replace("_:b", "?a").replace("_:e", "?x")
    return Part(Block(text), _named(*text.split()))


blocks: Parts = st.lists(_triples, min_size=1, max_size=2).map(_block)


def _blocks(place: Place, names: frozenset[str]) -> Parts:
    return blocks


def _reaches(place: Place, names: frozenset[str]) -> Parts:
    def made(given: tuple[Any, Path, Any], turned: bool) -> Part:
        subject, path, target = given[::-1] if turned else given
        return Part(Reach(subject, path, target), _named(subject, target))

    variables = st.sampled_from(RESOURCE_NAMES)
    ends = st.sampled_from((*RESOURCE_NAMES, *vocabulary.RESOURCES[: 2 if place.anchored else 0]))
    # Inside of EXISTS both ends may be constants: pyoxigraph finds none of length zero where the data has not them.
    known = st.tuples(variables, solid_paths if place.exists else paths, ends | st.just("?x"))
    solid = st.tuples(variables, solid_paths, _resources)
    return st.builds(made, known | known | solid, st.booleans())


def _chains(place: Place, names: frozenset[str]) -> Parts:
    given = st.tuples(_resources, chains, _resources)
    return given.filter(lambda each: bool(_named(each[0], each[2]))).map(
        lambda each: Part(Reach(*each), _named(each[0], each[2]))
    )


def _nested(place: Place, names: frozenset[str]) -> Parts:
    return groups(place.inner()).map(lambda inner: Part(("{", inner.tree, "}"), inner.names))


def _optionals(place: Place, names: frozenset[str]) -> Parts:
    return groups(place.inner()).map(lambda inner: Part(("OPTIONAL {", inner.tree, "}"), inner.names))


def _unions(place: Place, names: frozenset[str]) -> Parts:
    def made(branches: list[Part]) -> Part:
        trees: list[Tree] = [("{", each.tree, "}") for each in branches]
        joined = (trees[0], *(("UNION", each) for each in trees[1:]))
        return Part(joined, frozenset().union(*(each.names for each in branches)))

    return st.lists(groups(place.inner()), min_size=2, max_size=2 if place.depth < 2 else 3).map(made)


def _minuses(place: Place, names: frozenset[str]) -> Parts:
    return groups(place.inner()).map(lambda inner: Part(("MINUS {", inner.tree, "}")))


def _filters(place: Place, names: frozenset[str]) -> Parts:
    return conditions.map(lambda condition: Part(f"FILTER({condition})"))


def _existences(place: Place, names: frozenset[str]) -> Parts:
    words = st.sampled_from(("FILTER EXISTS {", "FILTER NOT EXISTS {"))
    inner = groups(replace(place.inner(), exists=True))
    plain = st.tuples(words, inner).map(lambda given: Part((given[0], given[1].tree, "}")))
    mixed = st.tuples(conditions, st.sampled_from(("&&", "||")), inner).map(
        lambda given: Part((f"FILTER(({given[0]}) {given[1]} EXISTS {{", given[2].tree, "})"))
    )
    return st.one_of(plain, plain, mixed)


@st.composite
def _binds(draw: st.DrawFn, place: Place, names: frozenset[str]) -> Part:
    """To a name that is free; pyoxigraph wants it free in the expression, too."""
    expression = draw(anything)
    free = [name for name in (*VALUE_NAMES, *RESOURCE_NAMES, "?n") if name not in names and name not in expression]
    if not free:
        return draw(blocks)
    name = draw(st.sampled_from(free))
    return Part(f"BIND({expression} AS {name})", frozenset([name]))


_cells = {
    **dict.fromkeys(RESOURCE_NAMES, st.sampled_from((*vocabulary.RESOURCES, "UNDEF"))),
    **dict.fromkeys(VALUE_NAMES, st.sampled_from((*vocabulary.COMMON, "UNDEF")) | st.sampled_from(vocabulary.LITERALS)),
}


@st.composite
def values(draw: st.DrawFn) -> Part:
    """VALUES of one or two variables, in either of its forms."""
    names = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=2, unique=True))
    rows = draw(st.lists(st.tuples(*(_cells[name] for name in names)), min_size=1, max_size=4))
    if len(names) == 1:
        return Part(f"VALUES {names[0]} {{ {' '.join(row[0] for row in rows)} }}", frozenset(names))
    lines = " ".join(f"({' '.join(row)})" for row in rows)
    return Part(f"VALUES ({' '.join(names)}) {{ {lines} }}", frozenset(names))


def _values_of(place: Place, names: frozenset[str]) -> Parts:
    return values()


def _graphs(place: Place, names: frozenset[str]) -> Parts:
    words = st.sampled_from(("?g", "?g", "?h", *vocabulary.GRAPHS))
    inner = groups(replace(place.inner(), anchored=False))
    return st.tuples(words, inner).map(
        lambda given: Part(Within(given[0], given[1].tree), given[1].names | _named(given[0]))
    )


@st.composite
def _selects(draw: st.DrawFn, place: Place, names: frozenset[str]) -> Part:
    inner = draw(groups(place.inner()))
    chosen = draw(selections.inner(tuple(sorted(inner.names)), f"_{place.depth}"))
    return Part(("{ SELECT", chosen.head, "{", inner.tree, "}", chosen.tail, "}"), frozenset(chosen.names))


_FLAT: tuple[Kind, ...] = (_blocks, _blocks, _reaches, _binds, _filters, _values_of)
_DEEP: tuple[Kind, ...] = (
    *_FLAT,
    _nested,
    _optionals,
    _optionals,
    _unions,
    _minuses,
    _existences,
    _existences,
    _graphs,
    _graphs,
    _selects,
)
_CONJUNCTIVE: tuple[Kind, ...] = (_blocks, _blocks, _chains, _binds, _filters, _filters, _values_of)
_OPEN = (_binds, _minuses, _selects)


@st.composite
def groups(draw: st.DrawFn, place: Place) -> Part:
    """Mostly triples first, so that there is something to do for the rest."""
    kinds = _kinds(place)
    reaching = _chains if place.conjunctive else _reaches
    first = draw(st.sampled_from((*[_blocks] * 8, reaching, reaching, _values_of, *kinds)))
    parts = [draw(first(place, frozenset()))]
    names = parts[0].names
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=2)):
        parts.append(draw(kind(place, names)))
        names |= parts[-1].names
    return Part(tuple(part.tree for part in parts), names)


def _kinds(place: Place) -> tuple[Kind, ...]:
    if place.conjunctive:
        return (*_CONJUNCTIVE, _nested, _nested) if place.depth else _CONJUNCTIVE
    return tuple(kind for kind in (_DEEP if place.depth else _FLAT) if not (place.exists and kind in _OPEN))
