"""The oracle: what pyoxigraph answers on history, and on one event alone."""

from __future__ import annotations

from tests.conformance.datasets import Dataset
from tests.conformance.engines.oxigraph import Oxigraph
from tests.conformance.results import Answer
from tests.differential import vocabulary
from tests.differential.data import Data
from tests.differential.grammar import Question


def on_history(data: Data, question: Question) -> Answer:
    """On the set of all triples and a named graph for each event, or on what FROM and FROM NAMED make of them. A slice
    is not cut off: see `verdicts`."""
    if question.default or question.named:
        default = tuple(each for each in question.default if each in data.graphs)
        named = tuple(each for each in question.named if each in data.graphs)
    else:
        default = named = data.graphs
    return _asked(data.dataset(default, named), question.defined(named))


def on_event(data: Data, graph: str, question: Question) -> Answer:
    """On one event: its triples are the default graph, and the one named graph, of its id."""
    return _asked(data.dataset((graph,), (graph,)), question.defined((graph,)))


def _asked(dataset: Dataset, text: str) -> Answer:
    oracle = Oxigraph()
    oracle.load(dataset)
    return oracle.run(text, vocabulary.EX)
