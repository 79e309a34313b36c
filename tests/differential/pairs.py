"""Pairs: generated data with a generated query, held to the oracle; one that fails says how to keep it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from hypothesis import HealthCheck, seed, settings

from tests.conformance.results import Answer
from tests.differential import oracles
from tests.differential.cases import Case, written
from tests.differential.data import Data
from tests.differential.grammar import Question
from tests.differential.verdicts import problem

Asking: TypeAlias = Callable[[str], Answer]
Test = TypeVar("Test", bound=Callable[..., None])


def examples(usual: int) -> settings:
    """So many, always the same; or as many as TRIPLEWIRE_EXAMPLES says, others each time unless a seed is given.

    They are the same only as long as strategies choose from what is listed: Hypothesis mixes into its own numbers and
    texts constants of whatever modules happen to be imported.
    """
    wished = os.environ.get("TRIPLEWIRE_EXAMPLES")
    return settings(
        max_examples=int(wished) if wished else usual,
        derandomize=not wished,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def seed_of(part: int) -> Callable[[Test], Test]:
    """Other examples for each part of a test; with TRIPLEWIRE_EXAMPLES, whatever a seed on the command line says."""
    return (lambda test: test) if os.environ.get("TRIPLEWIRE_EXAMPLES") else seed(part)


def hold(data: Data, question: Question, ask: Asking) -> None:
    """On history. Raises AssertionError with the pair as a case, also where there is no answer at all."""
    expected = oracles.on_history(data, question)
    _hold(Case(data.events, question.text, written(expected), question.leeway), ask)


def hold_on_event(data: Data, graph: str, question: Question, ask: Asking) -> None:
    """The same for a subscription, on the event that is the graph."""
    expected = oracles.on_event(data, graph, question)
    event = data.events[data.graphs.index(graph)]
    _hold(Case((event,), question.text, written(expected), question.leeway), ask)


def _hold(case: Case, ask: Asking) -> None:
    wrong = verdict(case, ask)
    assert wrong is None, (
        f"{wrong}\n\n{case.query}\n\n"
        f"To keep it: python -m tests.differential.keep NAME 'why' <<'END'\n{json.dumps(case.to_json())}\nEND"
    )


def verdict(case: Case, ask: Asking) -> str | None:
    """What is wrong with the answer to a case."""
    try:
        found = ask(case.query)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return problem(case.leeway, case.answer, found)
