"""`python -m fuzz [TARGET …] [--seconds N]`: each target for so long. What it finds is written to `fuzz/found`; it is
mended, and kept in `tests/hardening/cases/TARGET`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from fuzz import codecs, languages

FOUND = Path(__file__).parent / "found"
SECONDS_FOR_ONE = 10
"""What a single input may take."""
_MEMORY = 4_096
"""Megabytes of a run."""
_MISSING = """atheris is not installed here. This installs it:

    .venv/bin/python -m pip install 'atheris==3.0.0'
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help="those to run, instead of all")
    parser.add_argument("--seconds", type=int, default=60, help="for each of them")
    parser.add_argument("--list", action="store_true", help="name them, and do nothing")
    given = parser.parse_args()
    targets = [*codecs.TARGETS, *languages.TARGETS]
    if unknown := [each for each in given.targets if each not in targets]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(targets)}")
    if given.list:
        sys.stdout.write("".join(f"{name}\n" for name in targets))
        return 0
    try:
        import atheris  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        sys.stderr.write(_MISSING)
        return 2
    failed = [name for name in given.targets or targets if not _ran(name, given.seconds)]
    sys.stdout.write(f"found something: {', '.join(failed)}; see {FOUND}\n" if failed else "nothing was found\n")
    return 1 if failed else 0


def _ran(name: str, seconds: int) -> bool:
    """In a process of its own: one that crashes costs no other."""
    artifacts, corpus = FOUND / name, FOUND / "corpus" / name
    for folder in (artifacts, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-timeout={SECONDS_FOR_ONE}", f"-rss_limit_mb={_MEMORY}", "-max_len=4096"]
    quiet = ["-print_final_stats=0", "-verbosity=0", f"-artifact_prefix={artifacts}/"]
    sys.stdout.write(f"{name} …\n")
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "fuzz.harness", name, *limits, *quiet, str(corpus)]).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
