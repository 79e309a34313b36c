"""`bench fanout` and `bench ztreamy`: one stream to many clients."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from triplewire.cli.common import Json
from triplewire.cli.measures import fanouts, figures_beside, points
from triplewire.cli.reports import say, tell


class Encoding(StrEnum):
    gzip = "gzip"
    zstd = "zstd"


class Rival(StrEnum):
    nchan = "nchan"


def fanout(
    clients: Annotated[
        Optional[list[int]],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="How many listen. Given more than once: a run for each, and growth.", show_default="1000"),
    ] = None,
    rate: Annotated[float, typer.Option(help="Events a second.", min=0.1)] = 10.0,
    seconds: Annotated[float, typer.Option(help="How long is measured, after a warm-up.", min=0.1)] = 10.0,
    size: Annotated[int, typer.Option(help="Bytes of an event as it is published.", min=500)] = 500,
    buffer: Annotated[
        Optional[float],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="Buffer window that clients ask for, in seconds.", min=0, show_default="the stream's"),
    ] = None,
    compress: Annotated[bool, typer.Option("--compress", help="Clients take compressed answers.")] = False,
    encoding: Annotated[Encoding, typer.Option(help="How they are compressed then.")] = Encoding.gzip,
    processes: Annotated[int, typer.Option(help="Edges on one port.", min=1)] = 1,
    against: Annotated[
        Optional[Rival],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="Also measure nginx with nchan, with as many workers, under the same load."),
    ] = None,
    json: Json = False,
) -> None:
    """One stream to many SSE clients: what is lost, delays, and CPU beside a loop that merely writes the same bytes.

    Edges, publisher and clients are processes of their own on this machine; the figures include all of them. A process
    of clients holds 10,000, an edge 15,000. `ulimit -n` must allow that many open files.
    """
    from triplewire.bench.fanout import Plan, run, sweep
    from triplewire.bench.fanout_links import end_in_order
    from triplewire.bench.fanout_servers import Manner

    end_in_order()
    counts = clients or [1_000]
    manner = Manner(buffer, encoding.value if compress else "identity")
    plan = Plan(counts[0], rate, seconds, manner, processes, size, against=against.value if against else "")
    report = run(plan, say) if len(counts) == 1 else sweep(plan, counts, say)
    tell(report, lambda: [fanouts(report)], json=json)


def ztreamy(
    quick: Annotated[bool, typer.Option("--quick", help="Few points, few clients, some seconds each.")] = False,
    clients: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="No point has more clients than this.", min=3, show_default="40000, or 2000 if quick"),
    ] = None,
    seconds: Annotated[
        Optional[float],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="How long each point is measured.", min=0.5, show_default="20, or 3 if quick"),
    ] = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw CPU and delays into this SVG file.", dir_okay=False, writable=True),
    ] = None,
    json: Json = False,
) -> None:
    """The experiments of the paper on Ztreamy, figures 3 to 6, beside what it says of them.

    Clients up at 4 items a second; rate up at 500 clients; one server against one and two repeaters; buffer windows.
    Items are posts of 881 bytes that come as a Poisson process has them. A point takes its seconds and some 20 more,
    all of them together about 25 minutes.
    """
    from triplewire.bench.fanout_links import end_in_order
    from triplewire.bench.ztreamy import QUICK, Plan, run
    from triplewire.bench.ztreamy_plot import svg

    end_in_order()
    usual = QUICK if quick else Plan()
    plan = replace(usual, clients=clients or usual.clients, seconds=seconds or usual.seconds)
    report = run(plan, say)
    tell(report, lambda: [points(report), figures_beside(report)], json=json, plot=plot, svg=svg)
