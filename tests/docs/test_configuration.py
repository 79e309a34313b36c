"""The page on configuration: every setting and every limit, with its value."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.docs import pages
from tests.limits import find_limits
from triplewire.config import Settings
from triplewire.config.settings import PREFIX

PAGE = pages.DOCS / "configuration.md"
LIMITS = {each.name: each.value for each in find_limits()}

_UNITS = {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "days": 86_400, "s": 1, "ms": 0.001}


def rows() -> dict[str, list[str]]:
    """The rows of the page's tables by what their first cell names."""
    cells = [line.strip("|").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {first.strip(" `"): [cell.strip() for cell in rest] for first, *rest in cells}


def number(text: str) -> float:
    """What `16 MiB` or `1,024` means."""
    digits, _, unit = text.partition(" ")
    return float(digits.replace(",", "")) * _UNITS.get(unit, 1)


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_every_setting_is_there_with_its_variable_and_default(field: object) -> None:
    name, default = getattr(field, "name", ""), getattr(field, "default", None)
    variable, shown, meaning = rows()[name]
    assert (variable, shown) == (f"`{PREFIX}{name.upper()}`", f"`{default}`")
    assert meaning


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_there_with_its_value_and_reason(name: str) -> None:
    shown, reason = rows()[name]
    value = LIMITS[name]
    if isinstance(value, str):
        assert shown.replace(" ", "") == value
    else:
        assert number(shown) == pytest.approx(value)
    assert len(reason) > 10


def test_nothing_is_there_that_does_not_exist() -> None:
    assert set(rows()) == {field.name for field in fields(Settings)} | set(LIMITS)
