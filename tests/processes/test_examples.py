"""The programs in `examples/` run against a real broker, and print what they are to print."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.docs import pages
from triplewire.service.supervisor import Supervisor

EXAMPLES = pages.ROOT / "examples"
PRINTED = {
    "subscribe": "http://example.org/subscribe/kitchen 31.5\n",
    "history": "http://example.org/history/event 4.2\n",
    "continuous": "http://example.org/continuous/car-7\n",
}

pytestmark = pytest.mark.processes


def test_every_program_has_its_expectation() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_a_program_prints_its_answer(broker: Supervisor, name: str) -> None:
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), broker.settings.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == (PRINTED[name], "")
