"""Reports: the outcomes of a run, for programs and for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tests.conformance.manifests import Kind
from tests.conformance.runs import Outcome, Verdict

_COLOURS = {Verdict.PASSED: "green", Verdict.FAILED: "red", Verdict.SKIPPED: "yellow"}


@dataclass(frozen=True)
class Report:
    engine: str
    outcomes: tuple[Outcome, ...]

    def of(self, verdict: Verdict, kind: Kind | None = None) -> list[Outcome]:
        return [each for each in self.outcomes if each.verdict == verdict and kind in (None, each.case.kind)]

    def rate(self, kind: Kind) -> float | None:
        """Passed of those that were run; None where none was."""
        passed, failed = len(self.of(Verdict.PASSED, kind)), len(self.of(Verdict.FAILED, kind))
        return passed / (passed + failed) if passed + failed else None

    def kinds(self) -> list[Kind]:
        return [kind for kind in Kind if any(each.case.kind == kind for each in self.outcomes)]


def as_json(report: Report) -> str:
    """Counts at the top, the same for each kind, and every name, with its reason where there is one."""
    document: dict[str, Any] = {"engine": report.engine, "total": len(report.outcomes), **_counts(report.outcomes)}
    document["kinds"] = {
        kind.value: _counts(each for each in report.outcomes if each.case.kind == kind) | {"rate": report.rate(kind)}
        for kind in report.kinds()
    }
    document["names"] = {verdict.value: [_entry(each) for each in report.of(verdict)] for verdict in Verdict}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _counts(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    found = Counter(each.verdict for each in outcomes)
    return {verdict.value: found[verdict] for verdict in Verdict}


def _entry(outcome: Outcome) -> dict[str, str]:
    entry = {"name": outcome.case.name, "label": outcome.case.label, "kind": outcome.case.kind.value}
    return entry | ({"reason": outcome.reason} if outcome.reason else {})


def as_table(report: Report) -> RenderableType:
    """The counts of each folder, then what failed and what was skipped, with reasons."""
    table = Table("folder", *(each.value for each in Verdict), title=f"W3C suites on {report.engine}")
    folders: dict[str, list[Outcome]] = {}
    for each in report.outcomes:
        folders.setdefault(each.case.name.partition("#")[0], []).append(each)
    for folder, outcomes in folders.items():
        table.add_row(folder, *_cells(outcomes))
    table.add_section()
    for kind in report.kinds():
        rate = report.rate(kind)
        outcomes = [each for each in report.outcomes if each.case.kind == kind]
        table.add_row(kind.value if rate is None else f"{kind.value} {rate:.1%}", *_cells(outcomes))
    return Group(table, *map(_line, report.of(Verdict.FAILED)), *map(_line, report.of(Verdict.SKIPPED)))


def _cells(outcomes: list[Outcome]) -> list[Text]:
    counts = _counts(outcomes)
    return [Text(str(counts[each.value] or ""), style=_COLOURS[each], justify="right") for each in Verdict]


def _line(outcome: Outcome) -> Text:
    style = _COLOURS[outcome.verdict]
    return Text.assemble((f"{outcome.verdict.value} ", style), (outcome.case.name, "bold"), f" {outcome.reason}")
