"""The command: `python -m tests.conformance URL [--token T] [--only GROUP] [--json]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import uvloop
from rich.console import Console

from tests.conformance.deployments.checks import Finding
from tests.conformance.deployments.reports import as_json, as_table
from tests.conformance.deployments.suite import GROUPS, chosen, tried


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints what was kept. 0 if everything was, 1 if not, 2 if it was called wrongly."""
    given = _options().parse_args(arguments)
    checks, notes = chosen(given.only, live=not given.no_pipeline, closed=given.token is not None), Console(stderr=True)
    with notes.status(f"{len(checks)} checks …", spinner="dots") as status:

        def told(found: Finding) -> None:
            status.update(f"{found.check.promise} …")

        findings = uvloop.run(tried(given.url, checks, given.token, given.patience, told))
    if given.json:
        sys.stdout.write(as_json(given.url, findings) + "\n")
    else:
        Console().print(as_table(given.url, findings))
    return 1 if any(each.why for each in findings) else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tests.conformance",
        description="Finds out over HTTP whether a deployment keeps what is promised. It publishes to streams of its "
        "own, whose names begin with conformance-, and erases them afterwards.",
    )
    parser.add_argument("url", metavar="URL", help="where the deployment is, such as http://localhost:8080")
    parser.add_argument("--token", help="who asks; it must be granted everything. With it the door is asked, too")
    parser.add_argument(
        "--only", action="append", default=[], choices=[each.name for each in GROUPS], help="only checks of this group"
    )
    parser.add_argument("--no-pipeline", action="store_true", help="leave out what needs matching, or history")
    parser.add_argument("--patience", type=float, default=60.0, metavar="SECONDS", help="for each check (60)")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
