"""pyoxigraph beside `bench match`: how fast it merely parses the events, and what it says that they match."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyoxigraph as ox

from triplewire.bench.match_filters import Filtered
from triplewire.bench.match_templates import Question, Template
from triplewire.model.terms import TW

VERSION = ox.__version__

AT_ONCE = 1_000
"""Subscriptions of one template that are asked together: parsing each text alone takes most of the time."""

_STREAM = f"<{TW}stream>"
_WHERE = re.compile(r"^SELECT \* (\{.*\})$", re.DOTALL)


@dataclass(frozen=True)
class Sampled:
    """An event as the log holds it."""

    position: int
    stream: str
    event: str
    text: str


def parse_rate(texts: Iterable[str]) -> float:
    """Events a second, parsed one by one in one thread, the results dropped. They are N-Triples, which it parses faster
    than any other syntax."""
    documents = [_ntriples(text).encode() for text in texts]
    began = time.perf_counter()
    for document in documents:
        deque(ox.parse(document, format=ox.RdfFormat.N_TRIPLES), maxlen=0)
    return len(documents) / (time.perf_counter() - began)


def brute_force(sample: Sequence[Sampled], asked: Iterable[Question]) -> Counter[int]:
    """How many of the subscriptions match each event, by position."""
    oracle = _Oracle(sample)
    found: Counter[int] = Counter()
    waiting: defaultdict[int, list[Question]] = defaultdict(list)
    for question in asked:
        same = waiting[id(question.template)]
        same.append(question)
        if len(same) == AT_ONCE or not question.template.plain:
            found.update(oracle.matched(same))
            same.clear()
    for same in waiting.values():
        found.update(oracle.matched(same))
    return found


class _Oracle:
    """The events as named graphs of one store, their streams in its default graph."""

    def __init__(self, sample: Sequence[Sampled]) -> None:
        self._positions = {each.event: each.position for each in sample}
        self._objects = {each.event: defaultdict[str, list[str]](list) for each in sample}
        self._store = ox.Store()
        for each in sample:
            graph = ox.NamedNode(each.event)
            for triple in ox.parse(_ntriples(each.text).encode(), format=ox.RdfFormat.N_TRIPLES):
                self._store.add(ox.Quad(triple.subject, triple.predicate, triple.object, graph))
                self._objects[each.event][str(triple.predicate)].append(str(triple.object))
            stream = ox.NamedNode(_STREAM[1:-1])
            self._store.add(ox.Quad(graph, stream, ox.Literal(each.stream), ox.DefaultGraph()))

    def matched(self, same: Sequence[Question]) -> list[int]:
        """The positions of the events that some subscriptions of one template match, once for each."""
        if same and same[0].template.plain:
            return self._at_once(same[0].template, [each.terms for each in same])
        return [position for each in same for position in self._one_by_one(each)]

    def _at_once(self, template: Template, rows: Sequence[Sequence[str]]) -> list[int]:
        """Patterns and filters may be asked of all graphs at once, and with all the constants as a table."""
        where = _WHERE.sub(r"\1", template.opened())
        width = len(rows[0])
        names = " ".join(["?number", *(f"?slot{place}" for place in range(width))])
        values = " ".join(f"({number} {' '.join(terms)})" for number, terms in enumerate(rows))
        stream = f"?g {_STREAM} ?slot{width - 1} ." if template.streamed else ""
        answer = self._store.query(
            f"SELECT DISTINCT ?g ?number {{ {stream} GRAPH ?g {{ {where[1:-1]} VALUES ({names}) {{ {values} }} }} }}"
        )
        assert isinstance(answer, ox.QuerySolutions)
        return [self._positions[_graph(solution)] for solution in answer]

    def _one_by_one(self, question: Question) -> list[int]:
        """Anything else means something else when it is asked of several graphs at once."""
        template = question.template
        if isinstance(template, Filtered):
            told = self._objects.items()
            return [self._positions[event] for event, its in told if template.holds(question.terms, its)]
        return [position for event, position in self._positions.items() if self._holds(question.sparql, event)]

    def _holds(self, sparql: str, event: str) -> bool:
        answer = self._store.query(sparql, default_graph=[ox.NamedNode(event)])
        assert isinstance(answer, ox.QuerySolutions)
        return next(iter(answer), None) is not None


def _graph(solution: ox.QuerySolution) -> str:
    graph = solution["g"]
    assert isinstance(graph, ox.NamedNode)
    return graph.value


def _ntriples(text: str) -> str:
    return "".join(f"{line} .\n" for line in text.split("\n"))
