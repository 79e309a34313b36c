"""The page on Spark programs: its blocks, one after the other, against a whole broker, say what the page says."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs import pages
from tests.processes.hearing import LOOK_SECONDS
from tests.spark.dataframes.sessions import program
from triplewire.client import Client
from triplewire.service.supervisor import Supervisor

pytestmark = [pytest.mark.processes, pytest.mark.spark]

PAGE = pages.DOCS / "spark.md"
_STEP = re.compile(r"^```python\n(.*?)^```(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with program() as made:
        yield made


def wait_stored(url: str) -> None:
    """Until the lake has what was published."""
    with Client(url) as client:
        head = client.health()["head"]
        while (client.health()["stored"] or "") < head:
            time.sleep(LOOK_SECONDS)


@pytest.mark.usefixtures("spark")
def test_the_session_of_the_page_works(broker: Supervisor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    steps = _STEP.findall(PAGE.read_text())
    for code, said in steps:
        there = code.replace("http://localhost:8080", broker.settings.url)
        there = there.replace("triplewire-data", str(broker.settings.data)).replace('"garden/', f'"{tmp_path}/')
        exec(compile(there, "spark.md", "exec"), names)
        assert capsys.readouterr().out == said
        wait_stored(broker.settings.url)
    assert len(steps) > 6
