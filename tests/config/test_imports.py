"""Packages that a process hides from itself."""

from __future__ import annotations

from collections.abc import Callable


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
