"""Queries and events of so few terms that they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.continuous.oracle import Asked, Published, Triple

EX = "http://example.org/"
NODES = tuple(f"<{EX}{name}>" for name in "abc")
PREDICATES = tuple(f"<{EX}{name}>" for name in ("knows", "in", "says"))
LITERALS = ('"x"', '"x"@en', '"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
VARIABLES = ("?s", "?t", "?u", "?v", "?w", "?x", "?y", "?z")

_SECOND = 1_000_000

# A predicate is a node as well, so that a variable can stand for it and for a subject.
_subjects = st.sampled_from((*NODES, PREDICATES[0]))
_predicates = st.sampled_from(PREDICATES)
_objects = st.sampled_from((*NODES, *NODES, *LITERALS))
_variables = st.sampled_from(VARIABLES[:4])

quads: st.SearchStrategy[Triple] = st.tuples(_subjects, _predicates, _objects)

_patterns: st.SearchStrategy[Triple] = st.tuples(
    st.one_of(_variables, _variables, _subjects),
    st.one_of(_predicates, _predicates, _predicates, _variables),
    st.one_of(_variables, _variables, _objects),
)


@st.composite
def events(draw: st.DrawFn, most: int = 6, quads_each: int = 3) -> list[Published]:
    """One at least, at positions with gaps, where something else was logged; several quads in an event, none twice in
    one, some of them published before. Times never go back."""
    found: list[Published] = []
    position, time = 0, 0
    some = st.lists(quads, min_size=1, max_size=quads_each, unique=True)
    for chosen in draw(st.lists(some, min_size=1, max_size=most)):
        position += draw(st.integers(1, 3))
        time += draw(st.integers(0, 3)) * _SECOND
        found.append(Published(position, tuple(chosen), time))
    return found


@st.composite
def queries(draw: st.DrawFn, most: int = 4) -> Asked:
    """One to `most` patterns of anything, which seldom have an answer; perhaps without a variable."""
    return _told(draw, tuple(draw(st.lists(_patterns, min_size=1, max_size=most))))


@st.composite
def answered(draw: st.DrawFn, published: Sequence[Published], most: int = 4, *, connected: bool = False) -> Asked:
    """One to `most` patterns that some of what is published answers: its quads, with variables for some of their terms.
    Variables come again in one pattern and in several, and stand for predicates.

    `connected`: every pattern shares a variable with one before it.
    """
    pool = [quad for event in published for quad in event.quads]
    names = draw(st.permutations(VARIABLES))
    lifted: dict[str, str] = {}
    patterns = [_lifted(draw, draw(st.sampled_from(pool)), lifted, names)]
    for _ in range(draw(st.integers(0, most - 1))):
        joining = [quad for quad in pool if any(lifted.get(term, "").startswith("?") for term in quad)]
        if connected and not joining:
            break
        quad = draw(st.sampled_from(joining if joining and (connected or draw(st.integers(0, 4))) else pool))
        patterns.append(_lifted(draw, quad, lifted, names))
    return _told(draw, tuple(patterns))


@st.composite
def worlds(
    draw: st.DrawFn, most: int = 3, *, patterns: int = 4, connected: bool = False
) -> tuple[list[Asked], list[Published]]:
    """Up to `most` queries, and events: most of the queries have answers. They stand from the beginning, without a span
    and with bag semantics; `bounded` gives others."""
    published = draw(events())
    asked = answered(published, patterns, connected=connected)
    some = asked if connected else st.one_of(asked, asked, asked, queries(patterns))
    return draw(st.lists(some, min_size=1, max_size=most)), published


@st.composite
def bounded(draw: st.DrawFn, asked: Asked, *, distinct: bool = False) -> Asked:
    """The same from some position on, or with pieces that must lie near each other; `distinct`: or with set
    semantics."""
    return replace(
        asked,
        since=draw(st.sampled_from((0, 0, 1, 2, 4))),
        span=draw(st.sampled_from((None, None, 1, 3, 6))),
        within=draw(st.sampled_from((None, None, 1, 2 * _SECOND, 5 * _SECOND))),
        distinct=distinct and draw(st.booleans()),
    )


def _lifted(draw: st.DrawFn, quad: Triple, lifted: dict[str, str], names: Sequence[str]) -> Triple:
    """The quad as a pattern. What a term became before it becomes again, but for a constant now and then."""
    for place, term in enumerate(quad):
        if term not in lifted:
            variable = draw(st.integers(0, 3)) < (1 if place == 1 else 3)
            free = [name for name in names if name not in lifted.values()]
            lifted[term] = free[0] if variable and free else term
    subject, predicate, target = (lifted[term] if draw(st.integers(0, 9)) else term for term in quad)
    return subject, predicate, target


def _told(draw: st.DrawFn, patterns: tuple[Triple, ...]) -> Asked:
    variables = Asked(patterns).variables
    told = draw(st.lists(st.sampled_from(variables), unique=True)) if variables else []
    return Asked(patterns, told=tuple(told))
