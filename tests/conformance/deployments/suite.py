"""The suite: all checks, put to a deployment one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tests.conformance.deployments.admitting import AUTH
from tests.conformance.deployments.asking import QUERY, SUBSCRIBE
from tests.conformance.deployments.brokers import broker_at
from tests.conformance.deployments.checks import Check, Finding, put
from tests.conformance.deployments.consuming import CONSUME
from tests.conformance.deployments.promising import GUARANTEES, STATUS
from tests.conformance.deployments.publishing import PUBLISH
from tests.conformance.deployments.refusing import PROBLEMS
from tests.conformance.deployments.speaking import DIALECTS

GROUPS = (PUBLISH, CONSUME, SUBSCRIBE, QUERY, PROBLEMS, GUARANTEES, DIALECTS, AUTH, STATUS)


def chosen(groups: Collection[str] = (), *, live: bool = True, closed: bool = True) -> list[Check]:
    """Those of some groups, or of all. Without `live`, those alone that need no pipeline; without `closed`, those that
    need no closed door."""
    found = [check for group in GROUPS if not groups or group.name in groups for check in group.checks]
    return [check for check in found if (live or not check.live) and (closed or not check.closed)]


async def tried(
    url: str,
    checks: Sequence[Check],
    token: str | None = None,
    patience: float = 60.0,
    told: Callable[[Finding], None] = lambda finding: None,
) -> list[Finding]:
    """What became of each. `told` hears of it at once."""
    findings: list[Finding] = []
    async with broker_at(url, token, patience) as broker:
        for check in checks:
            findings.append(await put(check, broker))
            told(findings[-1])
    return findings
