"""The page on layers: the diagram and the contracts that are held."""

from __future__ import annotations

import re
from configparser import ConfigParser

from tests.docs import pages


def linter() -> ConfigParser:
    found = ConfigParser()
    found.read(pages.ROOT / ".importlinter")
    return found


def test_the_diagram_is_the_contract() -> None:
    (diagram,) = pages.blocks(pages.DOCS / "layers.md", "")
    drawn = [re.split(r"\s{2,}", line)[0] for line in diagram.splitlines()]
    assert drawn == linter()["importlinter:contract:layers"]["layers"].strip().splitlines()


def test_every_contract_is_named() -> None:
    found = linter()
    names = [found[each]["name"] for each in found.sections() if each.startswith("importlinter:contract:")]
    text = (pages.DOCS / "layers.md").read_text()
    assert [name for name in names if f"| {name} |" not in text] == []
