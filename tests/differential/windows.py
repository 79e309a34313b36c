"""Windows: generated queries as continuous ones, in two ways.

The whole of a query is put into one window; or each of its GRAPHs is a window, of which the background is no part. To
the oracle, the first is the query over what the window holds, and the second is GRAPH on the union of each window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.conformance.datasets import Dataset
from tests.conformance.engines.answers import answer
from tests.conformance.engines.oxigraph import Oxigraph
from tests.conformance.results import Answer
from tests.differential import vocabulary
from tests.differential.data import Data
from tests.differential.engines import OnDuckDB
from tests.differential.grammar import Question
from tests.differential.trees import Asked, Defined, Tree, Within
from tests.differential.vocabulary import short
from triplewire.sparql import compile_windows, parse_registration

_USED = re.compile(r"WINDOW (<[^>]*>)")


_FIRST = vocabulary.GRAPHS[0]


class Windowed(Asked):
    """GRAPH is spelled as WINDOW; where any graph would do, it is the first, whose name the variable has."""

    def within(self, tree: Within) -> str:
        if tree.name.startswith("?"):
            return f"{{ WINDOW {_FIRST} {{ {self.spelled(tree.body)} }} VALUES {tree.name} {{ {_FIRST} }} }}"
        return f"WINDOW {tree.name} {{ {self.spelled(tree.body)} }}"


class Graphed(Defined):
    """The same for the oracle."""

    def within(self, tree: Within) -> str:
        if tree.name.startswith("?"):
            return f"{{ GRAPH {_FIRST} {{ {self.spelled(tree.body)} }} VALUES {tree.name} {{ {_FIRST} }} }}"
        return super().within(tree)


def whole(question: Question) -> str:
    """The query, all of it in the first window."""
    return _registered(question, (f"WINDOW {_FIRST} {{", Asked().spelled(question.body), "}"))


def parted(question: Question) -> str:
    """The query, with windows for its graphs."""
    return _registered(question, Windowed().spelled(question.body))


def _registered(question: Question, body: Tree) -> str:
    spelled = Windowed().spelled(body)
    used = dict.fromkeys(_USED.findall(spelled))
    declared = " ".join(f"FROM NAMED WINDOW {each} ON <home> [RANGE PT1S]" for each in used)
    limit = "" if question.limit is None else f"LIMIT {question.limit}"
    offset = f"OFFSET {question.offset}" if question.offset else ""
    head = question.head.replace("SELECT", "SELECT REDUCED", 1) if question.reduced else question.head
    tail = Asked().spelled(question.tail)
    return short(f"{head} {declared} WHERE {{ {spelled} }} {tail} {limit} {offset}")


@dataclass(frozen=True)
class Held:
    """What each window holds, and the background."""

    windows: tuple[Data, ...]
    background: Data

    def expected(self, question: Question) -> Answer:
        """Where the windows are graphs."""
        named = {
            graph[1:-1]: each.union(each.graphs) for graph, each in zip(vocabulary.GRAPHS, self.windows, strict=True)
        }
        oracle = Oxigraph()
        oracle.load(Dataset(self.background.union(self.background.graphs), named))
        spelled = Graphed(vocabulary.GRAPHS).spelled((question.head, "{", question.body, "}", question.tail))
        return oracle.run(short(spelled.strip()), vocabulary.EX)


class OnWindows(OnDuckDB):
    def hold(self, held: Held) -> None:
        for place, each in enumerate(held.windows):
            self.take(each)
            self._connection.execute(f"CREATE OR REPLACE TABLE held_{place} AS FROM quads")
        self.take(held.background)

    def ask(self, text: str) -> Answer:
        registration = parse_registration(text)
        for place, clause in enumerate(registration.windows):
            number = vocabulary.GRAPHS.index(f"<{clause.name}>")
            self._connection.execute(f"CREATE OR REPLACE VIEW window_{place} AS FROM held_{number}")
        compiled = compile_windows(registration, "duckdb")
        return answer(compiled, self._connection.sql(compiled.sql).to_arrow_table())
