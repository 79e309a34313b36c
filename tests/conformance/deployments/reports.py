"""Reports: which promises were kept, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from rich.table import Table
from rich.text import Text

from tests.conformance.deployments.checks import Finding


def as_table(url: str, findings: Sequence[Finding]) -> Table:
    broken = sum(bool(each.why) for each in findings)
    kept = f"{len(findings) - broken} of {len(findings)} promises kept"
    table = Table("", "of", "promise", "seconds", title=f"{url}: {kept}", title_justify="left", box=None)
    for each in findings:
        promise = Text(each.check.promise)
        if each.why:
            promise.append(f"\n{each.why}", style="red")
        sign = Text("broken", style="bold red") if each.why else Text("kept", style="green")
        table.add_row(sign, each.check.group, promise, f"{each.seconds:.2f}")
    return table


def as_json(url: str, findings: Sequence[Finding]) -> str:
    checks = [
        {
            "group": each.check.group,
            "promise": each.check.promise,
            "kept": not each.why,
            "why": each.why or None,
            "seconds": round(each.seconds, 3),
        }
        for each in findings
    ]
    kept = sum(not each.why for each in findings)
    return orjson.dumps({"url": url, "kept": kept, "broken": len(checks) - kept, "checks": checks}).decode()
