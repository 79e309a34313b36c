"""Delays of `bench continuous`: from the publication of the last piece of an answer to those who listen."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from triplewire.bench.continuous_conjunctions import BASE, Question, pieces
from triplewire.bench.continuous_session import STREAM, Session
from triplewire.bench.listening import Heard, listen
from triplewire.bench.report import percentile
from triplewire.model import parse_position

LISTENERS = 100
RATE = 50
"""Answers a second."""
SECONDS = 20
PATIENCE = 60.0


async def delays(session: Session) -> dict[str, Any]:
    """All pieces but the last are there first; then the last ones come one by one, at a steady rate."""
    asked = _listened(session)
    heard = Heard()
    settings = session.broker.settings
    paths = [f"/queries/{session.ids[number]}/answers" for number in asked]
    ears = await listen(settings.host, settings.port, paths, heard, BASE)
    made = [
        pieces(session.workload, session.workload.questions[asked[turn % len(asked)]], session.published + turn)
        for turn in range(RATE * SECONDS)
    ]
    first = await session.send([text for each in made for text in each[:-1]])
    await session.passed(first.last)
    sent = await _completed(session, [each[-1] for each in made])
    await _settle(heard, sent)
    for ear in ears:
        ear.close()
    return _told(heard, sent, len(asked))


def _listened(session: Session) -> list[int]:
    """The numbers of questions, no two of which are the same; those at the end have as good a chance."""
    first: dict[Question, int] = {}
    for number, question in enumerate(session.workload.questions):
        first.setdefault(question, number)
    numbers = list(first.values())
    return numbers[:: max(1, len(numbers) // LISTENERS)][:LISTENERS]


async def _completed(session: Session, last: list[str]) -> dict[int, float]:
    """When each event was sent, by its number."""
    sent: dict[int, float] = {}
    tasks = []
    began = time.perf_counter()
    for index, text in enumerate(last):
        await asyncio.sleep(max(0.0, began + index / RATE - time.perf_counter()))
        number, session.published = session.published, session.published + 1
        sent[number] = time.perf_counter()
        body = f"{text} <{BASE}e/{number}> .\n".encode()
        tasks.append(asyncio.create_task(session.client.publish(STREAM, body)))
    receipts = await asyncio.gather(*tasks)
    await session.passed(max(parse_position(each["last"]) for each in receipts))
    return sent


async def _settle(heard: Heard, sent: dict[int, float]) -> None:
    """Some events complete answers of several questions, so that it is not enough to count."""
    until = time.perf_counter() + PATIENCE
    while not sent.keys() <= {event for _, event in heard.counts} and time.perf_counter() < until:
        await asyncio.sleep(0.02)


def _told(heard: Heard, sent: dict[int, float], listeners: int) -> dict[str, Any]:
    counts = {event: count for (_, event), count in heard.counts.items() if event in sent}
    taken = [(at - sent[event]) * 1_000 for (_, event), at in heard.times.items() if event in sent]
    return {
        "p50_ms": round(percentile(taken, 0.5)),
        "p99_ms": round(percentile(taken, 0.99)),
        "delays": {
            "listeners": listeners,
            "answers_per_s": RATE,
            "heard": len(taken),
            "lost": len(sent.keys() - counts.keys()),
            "doubled": sum(count - 1 for count in counts.values()),
        },
    }
