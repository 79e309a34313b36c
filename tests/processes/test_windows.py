"""Windows through the real processes: they close though nothing comes any more, and what they tell is a stream."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from pathlib import Path

import orjson
import pytest

from bench.processes import free_port
from tests.processes.hearing import LOOK_SECONDS
from tests.processes.test_continuous import answers, register
from tests.processes.test_crashes import edge, faulty_pipeline
from triplewire.config import Settings
from triplewire.model.events import parse_payload

pytestmark = pytest.mark.processes

EX = "http://example.org/"
COUNTED = f"""
    REGISTER RSTREAM <counted> AS
    SELECT ?road (COUNT(?car) AS ?cars) FROM NAMED WINDOW <urn:w> ON <city> [RANGE PT1S]
    WHERE {{ WINDOW <urn:w> {{ ?car <{EX}seenBy> ?sensor . ?sensor <{EX}on> ?road }} }} GROUP BY ?road
"""
CHAINED = f"""
    REGISTER RSTREAM <flagged> AS
    CONSTRUCT {{ ?road a <{EX}Busy> }} FROM NAMED WINDOW <urn:w> ON <made> [RANGE TRIPLES 1]
    WHERE {{ WINDOW <urn:w> {{ ?road <{EX}cars> ?cars FILTER(?cars > 1) }} }}
"""
MADE = f"""
    REGISTER RSTREAM <made> AS
    CONSTRUCT {{ ?road <{EX}cars> ?cars }} FROM NAMED WINDOW <urn:w> ON <city> [RANGE PT1S]
    WHERE {{ {{ SELECT ?road (COUNT(?car) AS ?cars)
               {{ WINDOW <urn:w> {{ ?car <{EX}seenBy> ?sensor . ?sensor <{EX}on> ?road }} }} GROUP BY ?road }} }}
"""
EVENT = "".join(f"<{EX}car{n}> <{EX}seenBy> <{EX}s> <urn:e:{n}> .\n" for n in range(3)) + (
    f"<{EX}s> <{EX}on> <{EX}road> <urn:e:9> .\n"
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path, port=free_port())


async def until_told(settings: Settings, pipeline: Process, count: int) -> None:
    while len(answers(settings, "flagged")) < count:
        assert pipeline.returncode is None
        await asyncio.sleep(LOOK_SECONDS)


@pytest.mark.timeout(600)
async def test_a_quiet_stream_closes_its_windows_and_queries_chain_through_a_kill(settings: Settings) -> None:
    async with edge(settings) as (_, client):
        await client.publish("city", f"<{EX}a> <{EX}b> <{EX}c> .", content_type="text/turtle")
        for text in (COUNTED, MADE, CHAINED):
            await register(settings, text)
        await client.publish("city", EVENT, content_type="application/n-quads")
        pipeline = await faulty_pipeline(settings, "never")
        await until_told(settings, pipeline, 1)
        pipeline.send_signal(signal.SIGKILL)
        await pipeline.wait()
        before = [each["event"] for each in answers(settings, "counted")]
        pipeline = await faulty_pipeline(settings, "never")
        await client.publish("city", EVENT.replace("urn:e:", "urn:f:"), content_type="application/n-quads")
        await until_told(settings, pipeline, 2)
        pipeline.terminate()
        assert await pipeline.wait() == 0
    told = answers(settings, "counted")
    assert [each["event"] for each in told][: len(before)] == before
    assert len({each["event"] for each in told}) == len(told)
    documents = [parse_payload(each["event"], each["text"]) for each in told]
    rows = [row for each in documents if each for row in orjson.loads(each.body)["results"]["bindings"]]
    assert [(row["road"]["value"], row["cars"]["value"]) for row in rows] == [(f"{EX}road", "3")] * 2
    flags = [each["text"] for each in answers(settings, "flagged")]
    assert flags == [f"<{EX}road>\t<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>\t<{EX}Busy>"] * 2
