"""Requests that schemathesis makes from the document, good and bad; and those that were once answered wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import requests
import schemathesis

from tests.http.openapi.edges import served
from tests.http.openapi.fuzzing import fuzz

CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
EXAMPLES = 8
"""Requests of each kind for each operation, after those that cover each parameter: always the same, so that more of
them find nothing more. `make fuzz-http` makes new ones, for ten minutes."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("edge")) as found:
        yield found


def test_nothing_that_is_made_from_the_document_breaks_the_edge(url: str, tmp_path: Path) -> None:
    """Without a 5xx, and every answer as the document says."""
    done = fuzz(url, tmp_path, "--seed", "1", "--generation-deterministic", "--max-examples", str(EXAMPLES))
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    told = re.search(r"Selected: (\d+)/(\d+)\n  Tested: (\d+)", done.stdout)
    assert told is not None, done.stdout
    assert len(set(told.groups())) == 1, "some operations were left out"
    assert int(re.findall(r"(\d+) generated", done.stdout)[0]) > 1_000


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_was_answered_wrongly_once_is_answered_as_the_document_says(url: str, path: Path) -> None:
    case: dict[str, Any] = orjson.loads(path.read_bytes())
    schema = schemathesis.openapi.from_dict(requests.get(f"{url}/openapi.json", timeout=30).json())
    body = None if "body" not in case else case["body"].encode()
    response = requests.request(case["method"], url + case["path"], headers=case.get("headers"), data=body, timeout=30)
    assert response.status_code == case["status"], response.text
    schema[case["operation"]][case["method"]].validate_response(response)
