"""The command line as a whole."""

from __future__ import annotations

from importlib.metadata import version

from typer.testing import CliRunner

from triplewire.cli.app import app


def test_it_says_which_version_it_is() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout) == (0, f"triplewire {version('triplewire')}\n")
