"""The cache of compiled code is named after the sources of some folders: no compiled function may lie elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from triplewire.kernels import cache

DECORATORS = {"compiled", "inlined", "unfolded"}


def _compiling(path: Path) -> bool:
    """Does a module import a decorator of the compiler, or numba itself?"""
    return any(module == "numba" or DECORATORS & names for module, names in _imports(path))


def _imports(path: Path) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(ast.parse(path.read_text())):
        names = {each.name for each in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("triplewire.kernels", "numba")):
            yield (node.module or "").split(".")[0], names
        elif isinstance(node, ast.Import):
            yield from ((each.split(".")[0], set()) for each in names)


def test_every_module_with_compiled_functions_names_the_cache() -> None:
    users = {path for path in cache.ROOT.rglob("*.py") if _compiling(path)}
    assert len(users) > 10
    assert users <= {*cache.compiled_sources()}
    assert {path.parent.relative_to(cache.ROOT).as_posix() for path in users} == {*cache.COMPILED_FOLDERS}


def test_the_code_is_compiled_once_all_of_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.mark_compiled()
    assert not cache.is_compiled(), "there is no cache where it could be noted"
    cache.cache_directory().mkdir(parents=True)
    assert not cache.is_compiled()
    cache.mark_compiled()
    assert cache.is_compiled()
