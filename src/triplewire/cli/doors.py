"""`bench doors`: letting in, looking, and speaking dialects."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Optional

import typer

from triplewire.cli.common import Json
from triplewire.cli.measures import table
from triplewire.cli.reports import say, tell


class Part(StrEnum):
    tokens = "tokens"
    policies = "policies"
    dialects = "dialects"
    webhooks = "webhooks"


def doors(
    part: Annotated[
        Optional[list[Part]],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="Measure this alone; may be given more than once.", show_default="all"),
    ] = None,
    json: Json = False,
) -> None:
    """What it costs to let people in, to show them what they may see, and to speak their dialects.

    A request with and without a token; a stream to those who see all of it and to those who do not; an event in each
    dialect, and judged by shapes; webhooks to a hundred targets, and to the same when ten of them hang.
    """
    from triplewire.bench.doors import run
    from triplewire.bench.fanout_links import end_in_order

    end_in_order()
    report = run([each.value for each in part or list(Part)], say)
    tell(report, lambda: [table(report, "doors")], json=json)
