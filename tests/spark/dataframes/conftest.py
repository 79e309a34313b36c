"""One session for the tests of a file: others start and stop theirs in the same process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark.dataframes.sessions import program


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with program() as made:
        yield made
