"""Logs: objects on lines, with traces, and without what nobody may read."""

from __future__ import annotations

import logging
from collections.abc import Callable

import orjson
import pytest
import typer

from triplewire.cli.common import load_settings
from triplewire.config.logs import JsonFormatter, TextFormatter, redact_secrets
from triplewire.config.tracing import TraceParent, enter_span


def record(message: str, *arguments: object, error: BaseException | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("triplewire.test", logging.WARNING, "", 1, message, arguments, info)


def test_a_record_is_an_object_on_a_line() -> None:
    line = JsonFormatter("edge").format(record("%s\nwas said", "this"))
    assert "\n" not in line
    told = orjson.loads(line)
    assert [told[name] for name in ("level", "logger", "process", "message")] == [
        "warning", "triplewire.test", "edge", "this\nwas said",
    ]  # fmt: skip
    assert told["time"].endswith("+00:00")
    assert "trace_id" not in told


def test_what_is_written_under_a_span_tells_its_trace() -> None:
    with enter_span(TraceParent(10, 11)):
        told = orjson.loads(JsonFormatter("edge").format(record("x")))
    assert (told["trace_id"], told["span_id"]) == (f"{10:032x}", f"{11:016x}")


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cret",
        "{'Authorization': 'Bearer s3cret'}",
        "GET /streams/a?access_token=s3cret&after=now failed",
        "bearer s3cret, again bearer s3cret",
        "Authorization: Basic s3cret",
        "{'Authorization': 'Basic s3cret'}",
    ],
)
def test_secrets_are_left_out(text: str) -> None:
    error = ValueError(text)
    for formatter in (TextFormatter(), JsonFormatter("edge")):
        assert "s3cret" not in formatter.format(record("%s", text, error=error))
    assert "s3cret" not in redact_secrets(text)


def test_a_process_writes_what_it_logs_as_it_is_told(run_python: Callable[[str], str]) -> None:
    program = """
        import logging, sys
        from triplewire.config.logs import configure_logging
        sys.stderr = sys.stdout
        configure_logging("json", "edge")
        logging.getLogger("triplewire.x").info("hello")
        configure_logging("text", "edge")
        logging.getLogger("triplewire.x").warning("hello")
    """
    first, second = run_python(program).splitlines()
    assert orjson.loads(first)["message"] == "hello"
    assert second.endswith("WARNING triplewire.x: hello")


def test_a_format_that_there_is_not_is_told() -> None:
    with pytest.raises(typer.BadParameter, match="text or json"):
        load_settings(None, log_format="xml")
    assert load_settings(None, log_format="json").log_format == "json"
