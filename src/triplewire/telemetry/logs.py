"""Logs: what processes write for who looks after them, as text or as an object of JSON on each line."""

from __future__ import annotations

import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

from triplewire.telemetry.parents import current

JSON = "json"

_CONTROLS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
_SECRETS = re.compile(
    r"(?i)((?:bearer|basic)\s+|access_token=|authorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic)\s+)?)[^\s&'\",;]+"
)


def without_secrets(text: str) -> str:
    """Whatever a request shows to be let in is left out, wherever it got into the words of an error."""
    return _SECRETS.sub(r"\1…", text)


def on_one_line(text: str) -> str:
    """With whatever ends a line, or moves the cursor of a terminal, as an escape."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


class Texts(logging.Formatter):
    """For people. A line that does not begin with blanks begins a record, whatever a client had written into it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        return on_one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: ANN401
        return "\n".join(f"    {on_one_line(line)}" for line in super().formatException(ei).splitlines())


class Objects(logging.Formatter):
    """For programs: `time, level, logger, process, pid, message`, with `error` where there was one, and `trace_id` and
    `span_id` of the span under which it was written."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._process,
            "pid": os.getpid(),
            "message": without_secrets(record.getMessage()),
        }
        if record.exc_info:
            told["error"] = without_secrets(self.formatException(record.exc_info))
        parent = current()
        if parent is not None:
            told |= {"trace_id": f"{parent.trace:032x}", "span_id": f"{parent.span:016x}"}
        return orjson.dumps(told).decode()


def write_logs(format: str, process: str) -> None:
    """Everything that this process logs goes to its error output, as text or as objects of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Objects(process) if format == JSON else Texts())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # Programs that read logs sort them out themselves; of libraries only what is wrong is news.
    logging.getLogger("triplewire").setLevel(logging.INFO if format == JSON else logging.WARNING)
