"""pyoxigraph: an engine that we did not write. It shows that the harness can be passed."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph as ox

from tests.conformance.datasets import Dataset
from tests.conformance.engines.ports import Refused
from tests.conformance.results import Answer, answer


class Oxigraph:
    regimes = frozenset({"Simple"})

    def __init__(self) -> None:
        self._store = ox.Store()
        self._dataset = Dataset()

    def parse(self, text: str, base: str) -> None:
        try:
            ox.Store().query(text, base_iri=base)
        except SyntaxError as error:
            raise Refused(str(error)) from error
        except RuntimeError:
            # It parsed; what it asks for cannot be done.
            return

    def load(self, dataset: Dataset) -> None:
        self._store, self._dataset = ox.Store(), dataset
        self._extend(ox.DefaultGraph(), dataset.default)
        for name, triples in (*dataset.named.items(), *dataset.spare.items()):
            self._store.add_graph(ox.NamedNode(name))
            self._extend(ox.NamedNode(name), triples)

    def _extend(self, graph: ox.NamedNode | ox.DefaultGraph, triples: Iterable[ox.Triple]) -> None:
        self._store.extend(ox.Quad(triple.subject, triple.predicate, triple.object, graph) for triple in triples)

    def run(self, text: str, base: str) -> Answer:
        # Graphs that are given here would stand in for those that the query names.
        names: list[ox.NamedNode | ox.BlankNode] = [ox.NamedNode(name) for name in self._dataset.named]
        given = None if self._dataset.spare else names
        return answer(self._store.query(text, base_iri=base, named_graphs=given))

    def close(self) -> None:
        self._store = ox.Store()


def start() -> Oxigraph:
    return Oxigraph()
