"""The architecture page: its tree is the one that imports keep to, and everything that it names exists."""

from __future__ import annotations

import ast
import re
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.docs import pages

PAGE = pages.DOCS / "architecture.md"
SOURCE = pages.ROOT / "src" / "triplewire"
MOST_MODULES = 35
"""Modules on the way of an event from the publisher to the subscriber."""

_NAMED = re.compile(r"`([a-z_0-9/]+\.py):([A-Za-z_.0-9]+)`")


def linter() -> ConfigParser:
    found = ConfigParser()
    found.read(pages.ROOT / ".importlinter")
    return found


def tree() -> list[str]:
    """The packages of the page's diagram, in its order."""
    (diagram,) = (block for block in pages.blocks(PAGE, "") if block.startswith("model "))
    return [line.split()[0] for line in diagram.splitlines()]


def names_of(path: Path) -> set[str]:
    """Functions and classes of a module, and methods and fields as `Class.name`."""
    found: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {f"{node.name}.{each.name}" for each in methods}
    return found


def section(title: str) -> str:
    return next(part for part in PAGE.read_text().split("\n## ") if part.startswith(title))


def test_the_tree_is_the_contract() -> None:
    layers = linter()["importlinter:contract:layers"]["layers"].split()
    assert tree() == layers[::-1]


def test_the_tree_is_the_folder() -> None:
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert set(tree()) == folders - {"testing"}


def test_every_contract_is_named() -> None:
    found = linter()
    names = [found[each]["name"] for each in found.sections() if each.startswith("importlinter:contract:")]
    assert [name for name in names if f"| {name} |" not in PAGE.read_text()] == []


@pytest.mark.parametrize(("module", "name"), sorted(set(_NAMED.findall(PAGE.read_text()))))
def test_every_function_that_is_named_exists(module: str, name: str) -> None:
    assert name in names_of(SOURCE / module)


@pytest.mark.parametrize("path", ["Path 1", "Path 2", "Path 3", "Path 4"])
def test_the_paths_are_numbered_steps_with_functions(path: str) -> None:
    steps = re.findall(r"^(\d+)\. .*$", section(path), re.MULTILINE)
    assert [int(step) for step in steps] == list(range(1, len(steps) + 1))
    assert len(_NAMED.findall(section(path))) >= len(steps)


def test_an_event_passes_few_modules() -> None:
    assert len({module for module, _ in _NAMED.findall(section("Path 1"))}) <= MOST_MODULES
