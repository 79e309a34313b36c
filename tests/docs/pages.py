"""The pages of the documentation, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    """What a page is called in the report of a test."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in one of the languages."""
    return [text for language, text in _FENCE.findall(page.read_text()) if language in languages]


def codes(page: Path) -> set[str]:
    """What stands between backticks on a page."""
    return set(_CODE.findall(_FENCE.sub("", page.read_text())))


def links(page: Path) -> list[str]:
    """Where the links of a page lead that stay inside of the project, without their fragments."""
    found = _LINK.findall(_FENCE.sub("", page.read_text()))
    return [target.partition("#")[0] for target in found if "://" not in target and not target.startswith("#")]


def shell_lines(page: Path) -> Iterator[str]:
    """The command lines of a page: those of shell blocks, and those after a prompt in console blocks."""
    for block in blocks(page, "sh"):
        yield from block.replace("\\\n", " ").splitlines()
    for block in blocks(page, "console"):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))
