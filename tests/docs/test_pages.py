"""Pages: links that lead somewhere, and nothing that a reader cannot see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import pages

LONGEST_README = 120

_FOREIGN = re.compile(
    r"/(?:home|root|work|tmp|Users)/|\.\./shared|\b(?:DESIGN|STYLE)\.md|\bissue \d|\b(?:TODO|FIXME)\b",
)
"""Places of somebody's machine, texts that are not in the project, and notes to oneself."""


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    missing = [target for target in pages.links(page) if not (page.parent / target).is_file()]
    assert missing == []


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name)
def test_a_page_speaks_of_the_project_alone(page: Path) -> None:
    assert _FOREIGN.findall(page.read_text()) == []


def test_the_map_names_every_page() -> None:
    maps = (pages.DOCS / "index.md", pages.DOCS / "decisions" / "index.md")
    named = {(page.parent / target).resolve() for page in maps for target in pages.links(page)}
    there = {page.resolve() for page in pages.DOCS.rglob("*.md")} - {maps[0].resolve()}
    assert there - named == set()


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = (pages.ROOT / "README.md").read_text()
    assert len(text.splitlines()) < LONGEST_README
    assert {"make run", "make test"} <= {line.partition("#")[0].strip() for line in text.splitlines()}


def test_decisions_have_a_date_and_a_status() -> None:
    for note in (pages.DOCS / "decisions").glob("2*.md"):
        date = re.match(r"\d{4}-\d\d-\d\d", note.name)
        assert date, note.name
        assert f"*{date[0]}. Status: " in note.read_text(), note.name
