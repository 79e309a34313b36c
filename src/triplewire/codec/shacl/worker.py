"""The worker: a process that judges events by shapes, and nothing else. It hears and answers over its standard
streams:
four bytes of length, then JSON. Whoever started it kills it when it takes too long.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any, BinaryIO

import orjson

from triplewire.codec.shacl.judging import Judge
from triplewire.config import limits
from triplewire.model.errors import TriplewireError


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.SHAPES_MEMORY_BYTES, limits.SHAPES_MEMORY_BYTES))
    # What the validator might print must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    judge = Judge()
    _send(answers, {"ready": True})
    while (asked := _receive(sys.stdin.buffer)) is not None:
        _send(answers, _answer(judge, asked))


def _answer(judge: Judge, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        if asked.get("shapes") is not None:
            judge.learn(asked["key"], asked["shapes"])
        return {"verdicts": [judge.judge(asked["key"], text) for text in asked["events"]]}
    except TriplewireError as error:
        return {"error": str(error)}
    except (MemoryError, RecursionError) as error:
        return {"error": f"it takes too much: {type(error).__name__}"}


def _receive(source: BinaryIO) -> dict[str, Any] | None:
    head = source.read(4)
    if len(head) < 4:
        return None
    found: dict[str, Any] = orjson.loads(source.read(int.from_bytes(head)))
    return found


def _send(sink: BinaryIO, told: dict[str, Any]) -> None:
    data = orjson.dumps(told)
    sink.write(len(data).to_bytes(4) + data)
    sink.flush()


if __name__ == "__main__":
    main()
