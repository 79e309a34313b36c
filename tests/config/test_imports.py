"""Packages that a process hides from itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def test_a_hidden_package_cannot_be_imported_and_the_edge_does_without(run_python: Callable[[str], str]) -> None:
    said = run_python(
        """
        import sys
        from triplewire.config.settings import hide

        hide("pandas")
        hide("pandas")
        import triplewire.service.edge
        import pyarrow as pa

        pa.array([1, 2, 3])
        try:
            import pandas
        except ModuleNotFoundError as error:
            print(error.name, "pandas" in sys.modules)
        """
    )
    assert said.split() == ["pandas", "False"]


HEAVY = ("aiohttp", "deltalake", "duckdb", "numba", "pyarrow", "pyoxigraph", "sqlglot")


@pytest.mark.parametrize(
    ("modules", "loaded"),
    [
        ("triplewire.spark.jobs.daemon", ""),
        ("triplewire.spark.jobs.source, triplewire.service.task_log", "pyarrow"),
        ("triplewire.cli, triplewire.service.supervisor, triplewire.spark.java", ""),
        ("triplewire.service.pipeline", "deltalake duckdb pyarrow pyoxigraph sqlglot"),
        ("triplewire.service.edge", "aiohttp deltalake duckdb pyarrow pyoxigraph sqlglot"),
    ],
)
def test_a_process_loads_no_more_than_it_needs(run_python: Callable[[str], str], modules: str, loaded: str) -> None:
    """Spark starts several processes that only plan: each library in all of them is some hundred megabytes."""
    said = run_python(f"import sys, {modules}\nprint(*(name for name in {HEAVY} if name in sys.modules))")
    assert said.split() == loaded.split()
