"""Download the W3C suites by their hash and unpack them: `python -m tests.conformance.suites FOLDER`."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

REQUIREMENT = Path(__file__).with_name("suites.txt")
INSIDE = PurePosixPath("test/data/suites/w3c")
FOLDERS = {
    "dawg-data-r2": ("sparql10", None),
    "sparql11": (
        "sparql11",
        frozenset(
            [
                "aggregates",
                "bind",
                "bindings",
                "construct",
                "exists",
                "functions",
                "grouping",
                "negation",
                "project-expression",
                "property-path",
                "subquery",
                "syntax-query",
            ]
        ),
    ),
}
"""The name of each suite in the archive, our name for it, and its folders that are about queries; None is all."""


def target_of(name: str) -> PurePosixPath | None:
    """Where a file of the archive belongs; None for one that is not of the suites."""
    inner = PurePosixPath(*PurePosixPath(name).parts[1:])
    if not inner.is_relative_to(INSIDE):
        return None
    suite, *rest = inner.relative_to(INSIDE).parts or ("",)
    ours, folders = FOLDERS.get(suite, ("", frozenset()))
    return PurePosixPath(ours, *rest) if rest and (folders is None or rest[0] in folders) else None


def unpack(archive: Path, folder: Path) -> int:
    """Unpack the suites of a source distribution; the number of files."""
    count = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            target = target_of(member.name)
            if target is None or not member.isfile():
                continue
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            content = tar.extractfile(member)
            assert content is not None
            path.write_bytes(content.read())
            count += 1
    return count


def main() -> int:
    folder = Path(sys.argv[1])
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps")
    with TemporaryDirectory() as scratch:
        command = (*pip, "--no-binary=:all:", "--require-hashes", "-d", scratch, "-r", str(REQUIREMENT))
        if subprocess.run(command, check=False).returncode:
            return 1
        (archive,) = Path(scratch).glob("*.tar.gz")
        count = unpack(archive, folder)
    (folder / ".unpacked").touch()
    sys.stdout.write(f"{count} files of the W3C suites in {folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
