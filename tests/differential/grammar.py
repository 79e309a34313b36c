"""The grammar: whole queries of all forms."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.differential import selections, vocabulary
from tests.differential.expressions import RESOURCE_NAMES
from tests.differential.groups import Part, Place, groups, values
from tests.differential.trees import Asked, Defined, Tree
from tests.differential.verdicts import Leeway
from tests.differential.vocabulary import short

_DEPTH = 2


@dataclass(frozen=True, repr=False)
class Question:
    """A query in parts, as the oracle is asked without some of them. `default` and `named` are FROM and FROM NAMED."""

    form: str
    head: str
    body: Tree
    tail: Tree = ""
    default: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    offset: int = 0
    reduced: bool = False

    def __repr__(self) -> str:
        return self.text

    @property
    def leeway(self) -> Leeway:
        return Leeway(self.order, self.limit, self.offset, self.reduced)

    @property
    def text(self) -> str:
        sources = [*(f"FROM {each}" for each in self.default), *(f"FROM NAMED {each}" for each in self.named)]
        limit = "" if self.limit is None else f"LIMIT {self.limit}"
        offset = f"OFFSET {self.offset}" if self.offset else ""
        head = self.head.replace("SELECT", "SELECT REDUCED", 1) if self.reduced else self.head
        return short(Asked().spelled((head, *sources, "{", self.body, "}", self.tail, limit, offset)).strip())

    def defined(self, graphs: tuple[str, ...]) -> str:
        """What the oracle is asked on a dataset of these named graphs: the same without FROM, REDUCED and slice."""
        return short(Defined(graphs).spelled((self.head, "{", self.body, "}", self.tail)).strip())


_Sources = tuple[tuple[str, ...], tuple[str, ...]]
_some = st.lists(st.sampled_from(vocabulary.GRAPHS), unique=True, max_size=2).map(tuple)
_nowhere: st.SearchStrategy[_Sources] = st.just(((), ()))
_sources: st.SearchStrategy[_Sources] = st.sampled_from(range(8)).flatmap(
    lambda number: st.tuples(_some, _some) if number == 7 else _nowhere
)


@st.composite
def selects(draw: st.DrawFn, *, sources: st.SearchStrategy[_Sources] = _sources) -> Question:
    default, named = draw(sources)
    group = draw(groups(Place(_DEPTH, anchored=not default and not named)))
    chosen = draw(selections.outer(tuple(sorted(group.names))))
    slices = st.tuples(st.none() | st.sampled_from(range(6)), st.sampled_from(range(4)))
    unsliced = st.just((None, 0))
    limit, offset = draw(unsliced if chosen.reduced else unsliced | slices)
    tail: Tree = (chosen.tail,) if limit is not None or offset else (chosen.tail, _final(draw, group))
    return Question(
        "select",
        f"SELECT {chosen.head}",
        group.tree,
        tail,
        default,
        named,
        chosen.order,
        limit,
        offset,
        chosen.reduced,
    )


def _final(draw: st.DrawFn, group: Part) -> Tree:
    """VALUES after the query, of variables that it has anyhow: others would come into the projection."""
    if draw(st.sampled_from(range(6))) < 5:
        return ""
    found = draw(values())
    return found.tree if found.names <= group.names else ""


@st.composite
def asks(draw: st.DrawFn, *, sources: st.SearchStrategy[_Sources] = _sources) -> Question:
    default, named = draw(sources)
    group = draw(groups(Place(_DEPTH, anchored=not default and not named)))
    return Question("ask", "ASK", group.tree, "", default, named)


@st.composite
def constructs(draw: st.DrawFn, *, sources: st.SearchStrategy[_Sources] = _sources) -> Question:
    default, named = draw(sources)
    group = draw(groups(Place(_DEPTH - 1, anchored=not default and not named)))
    names = sorted(group.names) or ["?a"]
    subjects = st.sampled_from((*sorted(group.names & {*RESOURCE_NAMES}), vocabulary.RESOURCES[0], "_:b", names[-1]))
    nodes = st.sampled_from((*names, "?never", vocabulary.RESOURCES[0], "_:b"))
    predicates = st.sampled_from((*vocabulary.LINKS, *vocabulary.LINKS, "?r", "?c"))
    triples = draw(st.lists(st.tuples(subjects, predicates, nodes).map(" ".join), min_size=1, max_size=3))
    return Question("construct", f"CONSTRUCT {{ {' . '.join(triples)} }}", group.tree, "", default, named)


@st.composite
def describes(draw: st.DrawFn) -> Question:
    """Of resources that are no events: what is told of those is our own choice."""
    group = draw(groups(Place(_DEPTH - 1)))
    names = sorted(group.names - {"?g", "?h"})
    if not names:
        return Question("describe", f"DESCRIBE {draw(st.sampled_from(vocabulary.RESOURCES))}", "")
    nodes = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return Question("describe", f"DESCRIBE {' '.join(nodes)}", group.tree)


@st.composite
def conjunctions(draw: st.DrawFn) -> Question:
    """What is answered across events without windows."""
    group = draw(groups(Place(_DEPTH, conjunctive=True)))
    chosen = draw(selections.plain(tuple(sorted(group.names))))
    return Question("select", f"SELECT {chosen.head}", group.tree)


questions = st.one_of(selects(), selects(), selects(), selects(), asks(), constructs(), describes())
one_event = st.one_of(selects(sources=_nowhere), selects(sources=_nowhere), asks(sources=_nowhere))
"""What a subscription may ask."""
one_graph = constructs(sources=_nowhere)
"""What it may ask to be built."""
streamed = st.one_of(selects(sources=_nowhere), selects(sources=_nowhere), constructs(sources=_nowhere))
"""What a continuous query may ask of its windows."""
