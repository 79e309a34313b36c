"""Every limit: public module-level constants annotated as `Final`, each beside the code that keeps it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import zip_longest
from pathlib import Path

import triplewire

ROOT = Path(triplewire.__file__).parent


@dataclass(frozen=True)
class Limit:
    """A constant, the module that it stands in, and the reason under it."""

    name: str
    module: str
    reason: str

    @property
    def value(self) -> int | float | str:
        found: int | float | str = getattr(import_module(self.module), self.name)
        return found


@cache
def find_limits() -> tuple[Limit, ...]:
    """The limits of all modules, in the order of modules. A limit without a reason has an empty one."""
    return tuple(_read_limits())


def _read_limits() -> Iterator[Limit]:
    for path in sorted(ROOT.rglob("*.py")):
        module = ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)
        body = ast.parse(path.read_text()).body
        for statement, following in zip_longest(body, body[1:]):
            if not isinstance(statement, ast.AnnAssign) or ast.unparse(statement.annotation) != "Final":
                continue
            reason = following.value if isinstance(following, ast.Expr) else None
            text = reason.value if isinstance(reason, ast.Constant) else ""
            name = ast.unparse(statement.target)
            if not name.startswith("_"):
                yield Limit(name, module, str(text))
