"""Pasts: what queries are given in a batch of what was published before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triplewire.model.subscriptions import ContinuousQuery
from triplewire.ongoing.learners import Learner


@dataclass(frozen=True)
class Past:
    """What some queries are to be given of what was published before a batch: from a position on, to scopes of one
    origin. Only those that asked for it are told what it answers."""

    origin: int
    begins: int
    queries: Sequence[ContinuousQuery]
    told: bool


def pasts(learner: Learner, start: int, upto: int, *, anew: bool) -> Iterator[Past]:
    """Of a batch that begins after a position, and ends at another. `anew`: what those have who were there before it is
    made anew in it."""
    if anew:
        yield from _renewed(learner, start)
    for query in learner.backward.values():
        if query.begins is not None and start < query.since <= upto:
            yield Past(query.since, query.begins, [query], told=True)
    for structure, origin in learner.rates.origins.items():
        if start < origin <= upto and structure in learner.oldest:
            queries = learner.queries.values()
            found = [each for each in queries if each.structure == structure and each.begins is None]
            yield Past(origin, learner.oldest[structure] + 1, found, told=False)


def _renewed(learner: Learner, start: int) -> Iterator[Past]:
    """Of all that were there before: those that look back each by itself, the others by where their order was decided,
    from the first of them on or as far back as their answers reach."""
    origins: dict[int, list[ContinuousQuery]] = {}
    for query in learner.queries.values():
        if query.structure is None or query.since > start:
            continue
        if query.begins is not None:
            yield Past(query.since, query.begins, [query], told=False)
        elif learner.rates.origin(query.structure) <= start:
            origins.setdefault(learner.rates.origin(query.structure), []).append(query)
    for origin, queries in origins.items():
        begins = 1 + min(each.since for each in queries)
        spans = [each.span for each in queries]
        reach = None if None in spans else max(each or 0 for each in spans)
        yield Past(origin, begins if reach is None else max(begins, start - reach), queries, told=False)
