"""Admissions: who may ask what across events.

A continuous query is asked of all that is published to the streams that it reads. Whoever does not see all of that,
by
the streams that are granted to them and by the policy, may not ask: what is hidden would be in its answers.
"""

from __future__ import annotations

from triplewire.access import Policy, Principal, Sight, Verb, permit_of, sight_of
from triplewire.access.owners import principal_of
from triplewire.continuous.windows.plans import plan_windows
from triplewire.control.currents import Reads
from triplewire.model.errors import Forbidden
from triplewire.model.subscriptions import ContinuousQuery


def check(by: Principal, policy: Policy | None, reads: Reads, into: str | None, background: bool) -> None:
    """Raises Forbidden, in words that tell what would be right."""
    sight = sight_of(by, Verb.SUBSCRIBE, policy)
    if not _sees_all(sight, reads):
        raise Forbidden(_hidden(by, sight, reads), scope=Verb.SUBSCRIBE.value)
    if background:
        by.require(Verb.QUERY)
        if sight_of(by, Verb.QUERY, policy) is not None:
            raise Forbidden(f"{by.name} does not see all of history, which the query reads outside of its windows")
    if into is not None:
        by.require(Verb.PUBLISH, into)
        permit = permit_of(by, policy)
        if permit is not None and not _sees_all(permit.scope, (into,)):
            raise Forbidden(f"the policy does not let {by.name} publish whatever a query finds to {into}")


def is_allowed(query: ContinuousQuery, policy: Policy | None) -> bool:
    """Whether its owner may still ask it."""
    windows = plan_windows(query.text) if query.windowed else None
    reads, background = (query.streams, False) if windows is None else (windows.streams, windows.background)
    try:
        check(principal_of(query.owner), policy, reads, query.into, background)
    except Forbidden:
        return False
    return True


def _sees_all(sight: Sight | None, reads: Reads) -> bool:
    if sight is None:
        return True
    whole = sight.leaves_events and sight.graphs.is_all
    return whole and reads is not None and all(each in sight.streams for each in reads)


def _hidden(by: Principal, sight: Sight | None, reads: Reads) -> str:
    asked = "a continuous query is asked of all that is published"
    if sight is not None and (not sight.leaves_events or not sight.graphs.is_all):
        return f"{asked}, and the policy hides some of it from {by.name}"
    if reads is None:
        return f"{asked} to any stream, and {by.name} does not see all streams: name those that it reads"
    unseen = next(each for each in reads if sight is not None and each not in sight.streams)
    return f"{asked} to the streams that it reads, and {by.name} does not see {unseen}"
