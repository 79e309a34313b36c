"""The cache of compiled code is named after the sources of some folders: no compiled function may lie elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from triplewire.kernels import compiler

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
    users = {path for path in compiler.ROOT.rglob("*.py") if _compiling(path)}
    assert len(users) > 10
    assert users <= {*compiler.compiled_sources()}
    assert {path.parent.relative_to(compiler.ROOT).as_posix() for path in users} == {*compiler.COMPILED_FOLDERS}
