"""Log records are written to standard error as text or as one JSON object a line, without secrets."""

from __future__ import annotations

import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

from triplewire.config.tracing import current_span

JSON = "json"

_CONTROLS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
_SECRETS = re.compile(
    r"(?i)((?:bearer|basic)\s+|access_token=|authorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic)\s+)?)[^\s&'\",;]+"
)


def redact_secrets(text: str) -> str:
    """Whatever a request shows to be let in is left out, wherever it got into the words of an error."""
    return _SECRETS.sub(r"\1…", text)


def escape_controls(text: str) -> str:
    """With whatever ends a line, or moves the cursor of a terminal, as an escape."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


class TextFormatter(logging.Formatter):
    """For people. A line that does not begin with blanks begins a record, whatever a client had written into it."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        return redact_secrets(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escape_controls(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: ANN401
        return "\n".join(f"    {escape_controls(line)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(logging.Formatter):
    """For programs: `time, level, logger, process, pid, message`, with `error` where there was one, and `trace_id` and
    `span_id` of the span under which it was written."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": self._process,
            "pid": os.getpid(),
            "message": redact_secrets(record.getMessage()),
        }
        if record.exc_info:
            fields["error"] = redact_secrets(self.formatException(record.exc_info))
        parent = current_span()
        if parent is not None:
            fields |= {"trace_id": f"{parent.trace:032x}", "span_id": f"{parent.span:016x}"}
        return orjson.dumps(fields).decode()


def configure_logging(format: str, process: str) -> None:
    """Everything that this process logs goes to its error output, as text or as objects of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(process) if format == JSON else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # Programs that read logs sort them out themselves; of libraries only what is wrong is news.
    logging.getLogger("triplewire").setLevel(logging.INFO if format == JSON else logging.WARNING)
