"""The oracle of `bench match`: pyoxigraph says which subscriptions match, and how fast it merely parses the events.

`MatchCounter` says how many pairs of an event and a subscription our own table of matches stands for.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from bench.match_templates import SLOT, FilledTemplate, FilterTemplate
from triplewire.matching.index import Membership, Memberships
from triplewire.matching.index.programs import Opcode
from triplewire.matching.shapes import Shape
from triplewire.model import Subscription
from triplewire.model.terms import TW

AT_ONCE = 1_000
"""Subscriptions of one template that are asked together: parsing each text alone takes most of the time."""

_WHERE = re.compile(r"^SELECT \* \{(.*)\}$", re.DOTALL)


@dataclass(frozen=True)
class SampledEvent:
    """An event as the log holds it."""

    position: int
    stream: str
    event: str
    text: str


def _parse(text: str) -> Iterable[ox.Quad]:
    return ox.parse(_write_ntriples(text), format=ox.RdfFormat.N_TRIPLES)


def _write_ntriples(text: str) -> bytes:
    return "".join(f"{line} .\n" for line in text.split("\n")).encode()


def measure_parser(texts: Iterable[str]) -> float:
    """Return events a second, parsed one by one in one thread, the results dropped. They are N-Triples, which
    pyoxigraph parses faster than any other syntax."""
    documents = [*map(_write_ntriples, texts)]
    began = time.perf_counter()
    for document in documents:
        deque(ox.parse(document, format=ox.RdfFormat.N_TRIPLES), maxlen=0)
    return len(documents) / (time.perf_counter() - began)


def count_by_brute_force(sample: Sequence[SampledEvent], questions: Iterable[FilledTemplate]) -> Counter[int]:
    """Return how many of the subscriptions match each event, by position."""
    store = EventStore(sample)
    found: Counter[int] = Counter()
    waiting: defaultdict[int, list[FilledTemplate]] = defaultdict(list)
    for question in questions:
        if not question.template.plain:
            found.update(store.match_one(question))
            continue
        same = waiting[id(question.template)]
        same.append(question)
        if len(same) == AT_ONCE:
            found.update(store.match_together(same))
            same.clear()
    for same in filter(None, waiting.values()):
        found.update(store.match_together(same))
    return found


class EventStore:
    """Events as named graphs of one store, their streams in its default graph."""

    def __init__(self, sample: Sequence[SampledEvent]) -> None:
        self._positions = {each.event: each.position for each in sample}
        self._objects = {each.event: defaultdict[str, list[str]](list) for each in sample}
        self._store = ox.Store()
        for each in sample:
            graph = ox.NamedNode(each.event)
            for triple in _parse(each.text):
                self._store.add(ox.Quad(triple.subject, triple.predicate, triple.object, graph))
                self._objects[each.event][str(triple.predicate)].append(str(triple.object))
            stream = ox.Quad(graph, ox.NamedNode(f"{TW}stream"), ox.Literal(each.stream), ox.DefaultGraph())
            self._store.add(stream)

    def match_together(self, same: Sequence[FilledTemplate]) -> list[int]:
        """Return the positions of the events that subscriptions of one template match, once for each. Patterns and
        filters may be asked of all graphs at once, and with all the constants as a table."""
        template, width = same[0].template, len(same[0].terms)
        where = _WHERE.sub(r"\1", SLOT.sub(r"?slot\2", template.text))
        names = " ".join(["?number", *(f"?slot{index}" for index in range(width))])
        values = " ".join(f"({number} {' '.join(each.terms)})" for number, each in enumerate(same))
        stream = f"?g <{TW}stream> ?slot{width - 1} ." if template.streamed else ""
        graph = f"GRAPH ?g {{ {where} VALUES ({names}) {{ {values} }} }}"
        answer = self._store.query(f"SELECT DISTINCT ?g ?number {{ {stream} {graph} }}")
        assert isinstance(answer, ox.QuerySolutions)
        return [self._positions[str(solution["g"])[1:-1]] for solution in answer]

    def match_one(self, question: FilledTemplate) -> list[int]:
        """Match any other template, which means something else when it is asked of several graphs at once."""
        template, terms = question.template, question.terms
        if isinstance(template, FilterTemplate):
            return [self._positions[each] for each, objects in self._objects.items() if template.holds(terms, objects)]
        return [position for event, position in self._positions.items() if self._has_solution(question.sparql, event)]

    def _has_solution(self, sparql: str, event: str) -> bool:
        answer = self._store.query(sparql, default_graph=[ox.NamedNode(event)])
        assert isinstance(answer, ox.QuerySolutions)
        return next(iter(answer), None) is not None


@dataclass(frozen=True)
class MatchCounter:
    """The members of each group: how a value passes their thresholds, and these in order."""

    groups: Mapping[int, tuple[Membership, npt.NDArray[np.float64]]]

    @classmethod
    def of(cls, subscriptions: Iterable[Subscription], shapes: Iterable[Shape]) -> MatchCounter:
        """Subscriptions that an index does not decide are in no group: matches name them one by one."""
        kinds = {shape.key: Memberships(shape) for shape in shapes}
        firsts, thresholds = dict[int, Membership](), defaultdict[int, list[float]](list)
        for each in subscriptions:
            if (found := kinds[each.shape].of(each.constants)) is not None:
                firsts.setdefault(found.group, found)
                thresholds[found.group].append(found.threshold)
        return cls({group: (firsts[group], np.sort(thresholds[group])) for group in firsts})

    def count(self, table: pa.Table, position: int | None = None) -> int:
        """Return the pairs of a `MATCHES` table, or of one event in it. A row of a group counts for the members whose
        threshold it passes; several rows of an event and a group, one for each solution, count once."""
        if position is not None:
            table = table.filter(pc.equal(table["position"], position))
        alone = table.num_rows - table["subscription"].null_count
        grouped = table.filter(pc.is_valid(table["group"])).select(["position", "group", "value"])
        best = grouped.group_by(["position", "group"]).aggregate([("value", "max"), ("value", "min")]).sort_by("group")
        groups, starts = np.unique(best["group"].to_numpy(), return_index=True)
        parts = (np.split(best[name].to_numpy(), starts[1:]) for name in ("value_max", "value_min"))
        pairs = zip(groups.tolist(), *parts, strict=False)
        return int(alone) + sum(self._count_members(group, highest, lowest) for group, highest, lowest in pairs)

    def _count_members(self, group: int, highest: npt.NDArray[np.float64], lowest: npt.NDArray[np.float64]) -> int:
        """Return how many members all events together match, each given by the highest and the lowest of its values."""
        membership, thresholds = self.groups[group]
        match membership.op:
            case None:
                return len(thresholds) * len(highest)
            case Opcode.GREATER:
                return int(np.searchsorted(thresholds, highest, "left").sum())
            case Opcode.GREATER_EQUAL:
                return int(np.searchsorted(thresholds, highest, "right").sum())
        below = np.searchsorted(thresholds, lowest, "right" if membership.op is Opcode.LESS else "left")
        return len(thresholds) * len(lowest) - int(below.sum())
