"""`bench` hands over to the benchmarks of a clone: they lie beside `src/` and are not part of the wheel."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

import triplewire

_MISSING = (
    "triplewire: benchmarks come with a clone of the repository, not with the installed package.\n"
    "Clone it, run `make setup` there, and then `.venv/bin/triplewire bench` in the clone."
)
PASS_ON = {
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
    "ignore_unknown_options": True,
}
"""Every option is for the benchmarks, `--help` too."""


def bench(context: typer.Context) -> None:
    """Measure Triplewire on this machine: real processes, real sockets."""
    root = find_clone()
    if root is None:
        typer.secho(_MISSING, fg="red", err=True)
        raise typer.Exit(1)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    # By name, and not before it is used: the package has to work without its benchmarks.
    import_module("bench.commands").benches(context.args, prog_name=context.command_path)


def find_clone() -> Path | None:
    """Return the root of the clone that this package lies in, or None where it was installed from a wheel."""
    root = Path(triplewire.__file__).resolve().parents[2]
    return root if (root / "bench" / "commands.py").is_file() else None
