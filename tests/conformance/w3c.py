"""The command: `python -m tests.conformance.w3c DIR… --engine duckdb|spark|oxigraph [--json] [--only TEXT]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.progress import track

from tests.conformance.engines import ENGINES, start
from tests.conformance.manifests import Case, NoManifest, cases, find
from tests.conformance.reports import Report, as_json, as_table
from tests.conformance.runs import run


def gather(places: Iterable[Path], only: str = "") -> list[Case]:
    """The cases below these folders: those whose name has `only` in it."""
    return [case for manifest in find(places) for case in cases(manifest) if only in case.name]


def put(found: Iterable[Case], name: str) -> Report:
    """Put the cases to the engine of this name, one after the other."""
    with closing(start(name)) as engine:
        return Report(name, tuple(run(case, engine) for case in found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a report. Failed cases are what it reports, so only a folder without a manifest is an error."""
    given = _options().parse_args(arguments)
    try:
        found = gather(given.folders, given.only)
    except NoManifest as error:
        sys.stderr.write(f"{error}\n")
        return 2
    followed = track(found, given.engine, console=Console(stderr=True), transient=True, disable=given.json)
    report = put(followed, given.engine)
    if given.json:
        sys.stdout.write(as_json(report) + "\n")
    else:
        Console().print(as_table(report))
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("tests.conformance.w3c", description="Runs W3C test suites from their manifests.")
    parser.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR", help="a folder with a manifest.ttl, or above some"
    )
    parser.add_argument("--engine", choices=ENGINES, default="duckdb")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the tests with this in their name")
    return parser


if __name__ == "__main__":
    sys.exit(main())
