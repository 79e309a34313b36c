"""Fuzzing: requests that schemathesis makes from the document, against an edge that is started for it.

The command: `python -m tests.http.openapi.fuzzing --seconds 600`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.http.openapi.edges import served

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "allow_header_conformance",
)
"""No 5xx, and every answer as the document says."""


def fuzz(url: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What became of a run. It leaves nothing outside of the folder."""
    kept = () if "--generation-deterministic" in options else ("--generation-database", "none")
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--no-color", "run", f"{url}/openapi.json"),
        *("--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all"),
        *("--request-timeout", "30", "--warnings", "off", *kept, *options),
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.http.openapi.hooks", "PYTHONPATH": _path()}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _path() -> str:
    """Where the hooks are found, from wherever it runs."""
    return os.pathsep.join((str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "tests.http.openapi.fuzzing", description="Fuzzes an edge by its OpenAPI document."
    )
    parser.add_argument("--seconds", type=int, default=600, help="for how long (600)")
    parser.add_argument("--seed", type=int, default=None, help="to repeat a run")
    given = parser.parse_args(arguments)
    seed = () if given.seed is None else ("--seed", str(given.seed))
    with TemporaryDirectory() as folder, served(Path(folder) / "data") as url:
        done = fuzz(url, Path(folder), "--max-time", str(given.seconds), "--continue-on-failure", *seed)
    sys.stdout.write(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
