"""A release has one version: that of the project, of the tag, and of the changelog."""

from __future__ import annotations

import re
import subprocess
import tomllib

from tests.docs import pages

VERSION = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]["version"]
SECTIONS = re.findall(
    r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?$", (pages.ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
)


def tags() -> list[str]:
    """The tags of releases at this commit; none where this is no clone."""
    command = ["git", "-C", str(pages.ROOT), "tag", "--points-at", "HEAD", "v*"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def test_the_changelog_begins_with_what_is_not_released() -> None:
    (first, date), *released = SECTIONS
    assert (first, date) == ("Unreleased", "")
    assert [name for name, date in released if not date] == []


def test_a_tag_is_the_version_and_a_section_of_the_changelog() -> None:
    for tag in tags():
        assert tag == f"v{VERSION}"
        assert SECTIONS[1][0] == VERSION


def test_versions_fall_from_section_to_section() -> None:
    numbers = [tuple(map(int, name.split("."))) for name, _ in SECTIONS[1:]]
    assert numbers == sorted(numbers, reverse=True)
    assert not numbers or tuple(map(int, VERSION.split("."))) >= numbers[0]
