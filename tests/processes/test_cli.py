"""The command line against a running broker, as a person would use it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from triplewire.compose.up import Up

pytestmark = pytest.mark.processes

TURTLE = "<urn:cli:o> <http://www.w3.org/ns/sosa/hasSimpleResult> 250 ."


def triplewire(broker: Up, *arguments: str, text: str = "", fails: bool = False) -> str:
    command = [sys.executable, "-m", "triplewire", *arguments, "--url", broker.settings.url]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def test_publish_subscribe_and_consume(broker: Up, tmp_path: Path) -> None:
    sparql = "SELECT ?v { <urn:cli:o> ?p ?v FILTER(?v > 200) }"
    command = [
        sys.executable,
        "-m",
        "triplewire",
        "subscribe",
        sparql,
        "-n",
        "1",
        "--json",
        "--url",
        broker.settings.url,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout is not None
        made = orjson.loads(listening.stdout.readline())
        file = tmp_path / "event.ttl"
        file.write_text(TURTLE)
        taken = orjson.loads(triplewire(broker, "publish", "cli", str(file), "--json"))
        told = orjson.loads(listening.stdout.readline())
    assert made["since"] < taken["first"] == told["position"]
    assert told["results"]["results"]["bindings"][0]["v"]["value"] == "250"
    seen = triplewire(broker, "consume", "cli", "--after", "earliest", "-n", "1")
    assert "<urn:cli:o>" in seen


def test_query_and_status(broker: Up) -> None:
    assert "no" in triplewire(broker, "query", "ASK { <urn:nobody> ?p ?o }")
    assert "?x" in triplewire(broker, "query", "SELECT ?x { <urn:nobody> <urn:p> ?x }")
    assert "ready" in triplewire(broker, "status")
    assert orjson.loads(triplewire(broker, "status", "--json"))["pipeline"] == "ready"


def test_what_is_wrong_is_told_in_a_line(broker: Up) -> None:
    told = triplewire(broker, "publish", "cli", "--type", "text/turtle", text="<urn:s> <urn:p", fails=True)
    assert "line 1" in told
    assert "Traceback" not in told
    told = triplewire(broker, "query", "SELECT * { ?s ?p ?o OPTIONAL { ?s ?q ?r } }", fails=True)
    assert "OPTIONAL" in told
    assert "cannot be used" in told_by_a_second_broker(broker)


def told_by_a_second_broker(broker: Up) -> str:
    command = [sys.executable, "-m", "triplewire", "up", "--port", str(broker.settings.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr
