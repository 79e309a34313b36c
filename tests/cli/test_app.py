"""The command line as a whole."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from triplewire.cli.app import app, check_option_names
from triplewire.model.errors import BadRequest


def test_it_says_which_version_it_is() -> None:
    told = CliRunner().invoke(app, ["--version"])
    assert (told.exit_code, told.stdout) == (0, f"triplewire {version('triplewire')}\n")


def test_an_old_name_of_an_option_is_refused_with_the_new_one() -> None:
    check_option_names(["export", "--new=3"], {"--old": "--new"})
    with pytest.raises(BadRequest, match="the option --old is named --new now"):
        check_option_names(["export", "--old=3"], {"--old": "--new"})


def test_an_old_name_of_a_setting_is_refused_with_the_new_one() -> None:
    refused = CliRunner().invoke(app, ["edge"], env={"TRIPLEWIRE_DOOR": "open", "COLUMNS": "200"})
    assert refused.exit_code == 2
    assert "TRIPLEWIRE_DOOR is named TRIPLEWIRE_AUTH now" in refused.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["hooks", "list"], "the command hooks is named webhooks now"),
        (["bench", "doors"], "the command bench doors is named bench edge now"),
        (["export", "--upto", "1"], "the option --upto is named --through now"),
    ],
)
def test_commands_and_options_that_were_renamed_are_refused(arguments: list[str], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        check_option_names(arguments)
    check_option_names(["publish", "hooks"])
