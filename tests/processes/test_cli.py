"""The command line against a running broker, as a person would use it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import uvloop

from tests.conformance.deployments.suite import chosen, tried
from triplewire.service.supervisor import Supervisor

pytestmark = pytest.mark.processes

TURTLE = "<urn:cli:o> <http://www.w3.org/ns/sosa/hasSimpleResult> 250 ."


def triplewire(broker: Supervisor, *arguments: str, text: str = "", fails: bool = False) -> str:
    command = [sys.executable, "-m", "triplewire", *arguments, "--url", broker.settings.url]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode != 0) == fails, done.stderr
    return done.stderr if fails else done.stdout


def test_publish_subscribe_and_consume(broker: Supervisor, tmp_path: Path) -> None:
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
    past = triplewire(broker, "subscribe", sparql, "--from", told["position"], "-n", "1", "--json")
    assert {**orjson.loads(past.splitlines()[-1]), "subscription": told["subscription"]} == told
    seen = triplewire(broker, "consume", "cli", "--after", "earliest", "-n", "1")
    assert "<urn:cli:o>" in seen


def test_query_and_status(broker: Supervisor) -> None:
    assert "no" in triplewire(broker, "query", "ASK { <urn:nobody> ?p ?o }")
    assert "?x" in triplewire(broker, "query", "SELECT ?x { <urn:nobody> <urn:p> ?x }")
    assert "ready" in triplewire(broker, "status")
    assert orjson.loads(triplewire(broker, "status", "--json"))["pipeline"] == "ready"


def test_on_a_terminal_answers_are_for_people(broker: Supervisor) -> None:
    values = "VALUES (?iri ?n) { (<http://www.w3.org/ns/sosa/Sensor> 5) (UNDEF 1234.5) }"
    told = on_a_terminal(broker, "query", f"SELECT * {{ {values} }}")
    assert told[:4] == ["?iri             ?n", "───────────  ──────", "sosa:Sensor       5", "             1234.5"]
    assert told[4].startswith("2 rows in ")
    made = on_a_terminal(broker, "query", "CONSTRUCT { <urn:a> <urn:b> 1 } {}")
    assert " ".join(made).split()[:2] == ["<urn:a>", "<urn:b>"]


def on_a_terminal(broker: Supervisor, *arguments: str) -> list[str]:
    """The lines that a terminal without colours shows."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "triplewire", *arguments, "--url", broker.settings.url]
    environment = {**os.environ, "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "60"}
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False, env=environment)
    os.close(theirs)
    assert done.returncode == 0, done.stderr
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        return [line.rstrip() for line in terminal.read(65_536).decode().splitlines()]


def test_what_is_wrong_is_told_in_a_line(broker: Supervisor) -> None:
    told = triplewire(broker, "publish", "cli", "--type", "text/turtle", text="<urn:s> <urn:p", fails=True)
    assert "line 1" in told
    assert "Traceback" not in told
    told = triplewire(broker, "query", "SELECT * { ?s ?p }", fails=True)
    assert told.splitlines()[1:] == ["SELECT * { ?s ?p }", " " * 17 + "^"]
    assert "cannot be used" in told_by_a_second_broker(broker)


def told_by_a_second_broker(broker: Supervisor) -> str:
    command = [sys.executable, "-m", "triplewire", "up", "--port", str(broker.settings.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    return done.stderr


def test_the_broker_keeps_what_is_promised(broker: Supervisor) -> None:
    """The suite for deployments, from outside, but for its door: a token would close that to all other tests."""
    findings = uvloop.run(tried(broker.settings.url, chosen(closed=False)))
    assert [f"{each.check.promise}: {each.why}" for each in findings if each.why] == []
