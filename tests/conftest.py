"""What every test may use."""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from triplewire.sparql.queries import ensure_recursion_limit

# Before any test, because a test that changes it is told off.
ensure_recursion_limit()


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text().split())
"""Files with tests that `make quick` leaves out: it takes a minute without them, several with them."""


_OWN_PROCESS = re.compile(r"pytest\.mark\.(spark|processes)\b")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import files of which `-m` leaves no test: half of them for `make quick`, nearly all for the tests with
    processes, in every worker."""
    if collection_path.suffix != ".py":
        return None
    wanted = config.option.markexpr
    slow = collection_path.relative_to(config.rootpath).as_posix() in SLOW
    if slow and wanted.startswith("not slow"):
        return True
    if wanted == "spark or processes" and not _OWN_PROCESS.search(collection_path.read_text()):
        return True
    return None


def pytest_collection_finish() -> None:
    """Spare the garbage collector the ten thousand tests and the modules under them, and let it run less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow and generated tests. Files with long timeouts run first, so that no core waits for them at the end."""
    patience: dict[object, float] = {}
    for item in items:
        if item.nodeid.partition("::")[0] in SLOW:
            item.add_marker("slow")
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("generated")
        mark = item.get_closest_marker("timeout")
        patience[item.path] = max(patience.get(item.path, 0.0), mark.args[0] if mark and mark.args else 0.0)
    items.sort(key=lambda item: -patience[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is run to its end on a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Runs a program in a process of its own, for what can be started only once in a process; gives what it printed."""

    def run(program: str) -> str:
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stderr[-4_000:]
        return done.stdout

    return run


@pytest.fixture(scope="session")
def compiled() -> None:
    """The code of the matching index, which takes a minute to make where it is not at hand: before any test whose time
    is bounded."""
    from triplewire.matching.index.groups import warm_up

    warm_up()


# The same examples each time; `make explore` takes new ones.
settings.register_profile("same", derandomize=True)
settings.register_profile("explore", max_examples=1_000, print_blob=True)
settings.load_profile("same")
