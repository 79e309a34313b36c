"""How long a query takes to become SQL, in this process: when its structure is new, and when it is not."""

from __future__ import annotations

import time
from statistics import median

from triplewire.bench.sparql_data import City
from triplewire.bench.sparql_queries import QUESTIONS, Question
from triplewire.sparql import compile_query, parse_query

TURNS = 9


def compile_ms(city: City) -> dict[str, dict[str, float]]:
    """By query, `first` and `again`, with other constants."""
    _seconds("ASK {}")
    return {each.name: _times(each, city) for each in QUESTIONS}


def _times(question: Question, city: City) -> dict[str, float]:
    first, *again = (_seconds(question.text(city, turn)) * 1_000 for turn in range(1 + TURNS))
    return {"first": round(first, 2), "again": round(median(again), 2)}


def _seconds(text: str) -> float:
    began = time.perf_counter()
    compile_query(parse_query(text), "duckdb")
    return time.perf_counter() - began
