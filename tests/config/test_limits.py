"""Limits are positive, and each has its reason beside it."""

from __future__ import annotations

import ast
from pathlib import Path

from triplewire.config import limits


def test_every_limit_has_a_reason() -> None:
    body = ast.parse(Path(limits.__file__).read_text()).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.Assign):
            name = ast.unparse(statement.targets[0])
            assert isinstance(following, ast.Expr), name
            assert isinstance(following.value, ast.Constant), name


def test_numbers_are_positive() -> None:
    numbers = {name: value for name, value in vars(limits).items() if isinstance(value, int | float)}
    assert numbers
    assert [name for name, value in numbers.items() if value <= 0] == []
