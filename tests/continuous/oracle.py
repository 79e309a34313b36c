"""The oracle of continuous queries without windows: an engine that we did not write, asked again after every event.

Each quad that is published lies in a named graph of its own, so that one which is published twice counts twice, and
every answer says which publications are in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import pyoxigraph as ox

Triple: TypeAlias = tuple[str, str, str]
"""Terms as N-Triples writes them; in a pattern also variables, with their question mark."""
Bindings: TypeAlias = tuple[tuple[str, str], ...]
"""Name and term of what is told, in the order of names; a variable without a value is left out."""
Key: TypeAlias = tuple[int, int, Bindings]
"""Number of the query, position of the event that completes the answer, and what it is."""

_GRAPH = "urn:publication:"


@dataclass(frozen=True)
class Published:
    """An event: where it lies in the log, when it was taken in (microseconds), and its quads without their graph."""

    position: int
    quads: tuple[Triple, ...]
    time: int = 0

    @property
    def text(self) -> str:
        """As the log holds it."""
        return "\n".join("\t".join(quad) for quad in self.quads)


@dataclass(frozen=True)
class Asked:
    """A conjunctive query, since when it stands, and how far apart pieces of an answer may lie: `span` in positions,
    `within` in microseconds."""

    patterns: tuple[Triple, ...]
    rest: str = ""
    """FILTER and BIND, after the patterns."""
    told: tuple[str, ...] = ()
    """The variables that are told, without question marks; none means all."""
    distinct: bool = False
    since: int = 0
    span: int | None = None
    within: int | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Those of the patterns."""
        return tuple(sorted({term[1:] for pattern in self.patterns for term in pattern if term.startswith("?")}))

    @property
    def sparql(self) -> str:
        """What the engine that is tested is asked."""
        return f"{self._head} {{ {' . '.join(' '.join(each) for each in self.patterns)} {self.rest} }}"

    @property
    def identified(self) -> str:
        """What the oracle is asked: the same, and for each pattern the publication that it took."""
        graphs = " ".join(f"?g{number}_" for number in range(len(self.patterns)))
        parts = " ".join(f"GRAPH ?g{number}_ {{ {' '.join(each)} }}" for number, each in enumerate(self.patterns))
        told = " ".join(f"?{name}" for name in self.names)
        return f"SELECT {told} {graphs} {{ {parts} {self.rest} }}"

    @property
    def names(self) -> tuple[str, ...]:
        return self.told or self.variables

    @property
    def _head(self) -> str:
        told = " ".join(f"?{name}" for name in self.told) or "*"
        return f"SELECT DISTINCT {told}" if self.distinct else f"SELECT {told}"


def expected(queries: Sequence[Asked], events: Iterable[Published]) -> Counter[Key]:
    """How often each query is told each answer at each position. Events come in the order of their positions."""
    store, seen = ox.Store(), list[Published]()
    found: Counter[Key] = Counter()
    before = [Counter[Bindings]() for _ in queries]
    for event in events:
        seen.append(event)
        store.extend(_quads(event))
        times = {each.position: each.time for each in seen}
        for number, query in enumerate(queries):
            now = _answers(query, store, times)
            for bindings, count in (now - before[number]).items():
                found[number, event.position, bindings] += count
            before[number] = now
    return found


def orders(quads: Sequence[Triple]) -> Iterable[list[Published]]:
    """Every order in which the quads can arrive, one in each event."""
    for order in permutations(quads):
        yield [Published(position, (quad,)) for position, quad in enumerate(order, start=1)]


def normal(term: str) -> str:
    """A term as the oracle writes it."""
    (quad,) = ox.parse(f"<urn:s> <urn:p> {term} .".encode(), format=ox.RdfFormat.N_TRIPLES)
    return str(quad.object)


def _quads(event: Published) -> Iterable[ox.Quad]:
    lines = (f"{' '.join(quad)} <{_GRAPH}{event.position}:{number}> .\n" for number, quad in enumerate(event.quads))
    return ox.parse("".join(lines).encode(), format=ox.RdfFormat.N_QUADS)


def _answers(query: Asked, store: ox.Store, times: dict[int, int]) -> Counter[Bindings]:
    """All that there are by now, as often as they are told."""
    answer = store.query(query.identified)
    assert isinstance(answer, ox.QuerySolutions)
    found: Counter[Bindings] = Counter()
    for solution in answer:
        positions = [_position(solution[f"g{number}_"]) for number in range(len(query.patterns))]
        if _counts(query, positions, times):
            told = ((name, solution[name]) for name in sorted(query.names))
            found[tuple((name, str(term)) for name, term in told if term is not None)] += 1
    return Counter(dict.fromkeys(found, 1)) if query.distinct else found


def _position(graph: object) -> int:
    assert isinstance(graph, ox.NamedNode)
    return int(graph.value.removeprefix(_GRAPH).partition(":")[0])


def _counts(query: Asked, positions: Sequence[int], times: dict[int, int]) -> bool:
    """Whether all pieces came after the query, and near enough to each other."""
    first, last = min(positions), max(positions)
    near = query.span is None or last - first < query.span
    soon = query.within is None or times[last] - times[first] < query.within
    return first > query.since and near and soon
