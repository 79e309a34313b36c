"""A class name stands for one thing. The few public ones that are used twice are listed, each with its reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import triplewire

ROOT = Path(triplewire.__file__).parent

TWICE: dict[str, str] = {}
"""Class name → why it stands in two modules."""

MOST = 20


def classes() -> dict[str, list[str]]:
    """Public class names of all modules, each with the modules that define one."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path.relative_to(ROOT).as_posix())
    return found


def test_a_class_name_is_used_once_or_has_its_reason() -> None:
    twice = {name: where for name, where in classes().items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in TWICE} == {}, "not listed"
    assert set(TWICE) - set(twice) == set(), "listed, but used once"


def test_the_list_is_short_and_reasoned() -> None:
    assert len(TWICE) <= MOST
    assert all(TWICE.values())
