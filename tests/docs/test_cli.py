"""The command line: what pages say about it is what it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.docs import pages
from triplewire.cli.app import app

PAGE = pages.DOCS / "cli.md"


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """Every command that does something, with the words that lead to it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, each in inner.items():
        yield from leaves(each, (*path, name))


COMMANDS = dict(leaves(typer.main.get_command(app)))


def section(path: tuple[str, ...]) -> str:
    """What the page says under the heading of a command, with what it says of all commands."""
    general, *parts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    (own,) = [part for part in parts if part.splitlines()[0] == " ".join(path)]
    return general + own


def usage(path: tuple[str, ...]) -> str:
    return section(path).split(f"`triplewire {' '.join(path)}", 1)[1].split("`", 1)[0]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_on_the_page(path: tuple[str, ...]) -> None:
    options = {spelling for each in COMMANDS[path].params for spelling in each.opts if spelling.startswith("-")}
    text = section(path)
    assert {each for each in options if f"`{each}" not in text} == set()
    long = {each for each in options if each.startswith("--")}
    assert set(re.findall(r"--[a-z-]+", usage(path))) == long


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_argument_is_in_the_usage(path: tuple[str, ...]) -> None:
    arguments = [each.name.upper() for each in COMMANDS[path].params if each.param_type_name == "argument"]
    assert re.findall(r"(?<![-A-Z])[A-Z]{4,}", re.sub(r"\[--[^\]]*\]", "", usage(path))) == arguments


_CALL = re.compile(r"(?:^|&& |\| |^[A-Z_]+=\S+ )(?:\S*/)?triplewire ([^|&]+)$")


def calls(page: Path) -> Iterator[list[str]]:
    """The arguments of each `triplewire` that a page runs."""
    for line in pages.shell_lines(page):
        if found := _CALL.search(line):
            yield shlex.split(found[1], comments=True)


CALLS = [(pages.name(page), call) for page in pages.PAGES for call in calls(page)]


@pytest.mark.parametrize(
    ("page", "call"), CALLS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_every_command_line_parses(page: str, call: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word in call:
        if word.endswith((".trig", ".ttl", ".rq", ".toml")):
            Path(word).touch()
    size = 2 if tuple(call[:2]) in COMMANDS else 1
    path = tuple(call[:size])
    COMMANDS[path].make_context(" ".join(path), call[size:])


def test_pages_do_run_the_command() -> None:
    assert {tuple(call[:1]) for _, call in CALLS} >= {(path[0],) for path in COMMANDS}
