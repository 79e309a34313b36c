"""`triplewire bench`: a command for each benchmark. A benchmark is imported when its command is run."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bench.links import exit_on_sigterm
from bench.tables import list_aims, list_figures, say, show
from triplewire.cli.common import Json

benches = typer.Typer(
    help="Measure Triplewire on this machine: real processes, real sockets.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Encoding = StrEnum("Encoding", "gzip zstd")
FanoutRival = StrEnum("FanoutRival", "nchan")
Part = StrEnum("Part", "tokens policies dialects webhooks")
Workload = StrEnum("Workload", "PATHS STRUCTURES WINDOWED SLIDING")
Strategy = StrEnum("Strategy", "CSBV CQC")
WindowRival = StrEnum("WindowRival", [("RSP_JS", "rsp-js")])
"""Choices of options."""


def _plot(help: str) -> Any:  # noqa: ANN401 - typer reads it
    return typer.Option("--plot", help=help, dir_okay=False, writable=True)


_USUAL = "that of the workload"


@benches.callback()
def prepare() -> None:
    exit_on_sigterm()


@benches.command()
def pipeline(
    events: Annotated[int, typer.Option(help="Events of five quads to publish in batches.", min=1_000)] = 50_000,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions, of ten shapes.", min=1)] = 1_000,
    soak: Annotated[float, typer.Option(help="Seconds of a further run at half of the top rate.", min=0)] = 0.0,
    tasks: Annotated[int, typer.Option(help="Tasks that match at the same time.", min=1)] = 1,
    json: Json = False,
) -> None:
    """The whole path: publish, log, match, deliver, and store."""
    from bench.pipeline import PipelineWorkload, run

    show(run(PipelineWorkload(events, subscriptions, soak, tasks), say), "pipeline", json=json)


@benches.command()
def sparql(
    quads: Annotated[int, typer.Option(help="Quads to publish, five in an event.", min=1_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Measured runs of each query.", min=1)] = 7,
    skip_spark: Annotated[bool, typer.Option("--skip-spark", help="Measure DuckDB alone.")] = False,
    plot: Annotated[Path | None, _plot("Draw the times into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """SPARQL over history: ten queries, beside pyoxigraph with the same data in the same run."""
    from bench.sparql import draw, make_tables, run

    show(run(quads, runs, say, spark=not skip_spark), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def match(
    workload: Annotated[str, typer.Option(help="Workload: see above.")] = "paths",
    subscriptions: Annotated[
        int | None, typer.Option(help="Number of subscriptions.", min=10, show_default=_USUAL)
    ] = None,
    events: Annotated[int, typer.Option(help="Events of five quads in each run.", min=1_000)] = 200_000,
    runs: Annotated[int, typer.Option(help="Runs, each with new events.", min=1)] = 5,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also measure 1,000 subscriptions with as many matches.")
    ] = False,
    plot: Annotated[Path | None, _plot("Draw the rates into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """Matching alone: the pipeline's transform in Spark, beside pyoxigraph that only parses the events.

    Workloads, with their default number of subscriptions:

    `paths` 100,000 paths of five patterns between two constants · `mixed` 100,000 of 100 structures, with filters of
    every kind · `distinct` 1,000, each of a structure of its own · `sensors` 100,000 with one of 1,000 sensors and a
    threshold · `ranges` 100,000 with only a threshold · `classes` 100,000 with the subclasses of a class ·
    `everything` is `mixed`, but 5 % accept every event · `residual` 10,000 of 100 structures that no index decides.

    A run of fewer than 200,000 events measures mostly the start of a Spark job. Matches of a sample of events are
    compared with pyoxigraph; a difference ends the run with an error.
    """
    from bench.match import MatchOptions, draw, run
    from bench.match_workloads import find_workload

    options = MatchOptions(workload, subscriptions or find_workload(workload).usual, events, runs, growth)
    title = f"match, {workload}"
    show(run(options, say), title, json=json, plot=plot, draw=draw)


@benches.command()
def notifications(
    clients: Annotated[
        list[int], typer.Option(help="Clients, each with a subscription and a connection; again for one run more.")
    ] = [1_000],  # noqa: B006
    rate: Annotated[float, typer.Option(help="Events a second, each of which concerns one client.", min=1)] = 500.0,
    seconds: Annotated[float, typer.Option(help="Seconds of each measurement.", min=1)] = 20.0,
    json: Json = False,
) -> None:
    """Notifications to many clients: does one cost the same, however many listen?

    There is one edge for every 12,000 clients. `cpu_us` is the CPU time of all processes of the broker for each
    notification, `growth` how many times as much it is in the last run as in the first.
    """
    from bench.notifications import NotificationOptions, make_tables, sweep

    runs = [NotificationOptions(count, rate, seconds) for count in clients]
    show(sweep(runs, say), make_tables, json=json)


@benches.command()
def operators(
    most: Annotated[int, typer.Option(help="Largest number of subscriptions.", min=500)] = 100_000,
    matches: Annotated[int, typer.Option(help="Events of a measurement at most, with one match each.", min=1)] = 300,
    json: Json = False,
) -> None:
    """Ontological and bag operators: time for each match, beside table 15 of the thesis on knowledge-based networks.

    Subscriptions differ in a number, and an event has one match. `ms` is for single events, for three seconds at most;
    `together` is for events in one batch.
    """
    from bench.operators import make_tables, run

    show(run(most, matches, say), make_tables, json=json)


@benches.command()
def registration(
    subscriptions: Annotated[int, typer.Option(help="Subscriptions of each bulk.", min=1_000)] = 100_000,
    singles: Annotated[int, typer.Option(help="Subscriptions that are created one by one.", min=10)] = 300,
    json: Json = False,
) -> None:
    """Registration over HTTP: subscriptions of one shape, of 1,000 shapes, and filters in bulk; and single ones."""
    from bench.registration import run

    show(run(subscriptions, singles, say), "registration", json=json)


@benches.command()
def history(
    quads: Annotated[int, typer.Option(help="Quads to store, eight in an event.", min=10_000)] = 1_000_000,
    plot: Annotated[Path | None, _plot("Draw the figures beside the aims into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The lake: the throughput of the `store` query, beside pyoxigraph's bulk load, and the size on disk.

    A day of sensor observations is written to a log first. Then the pipeline's `store` query reads it, on Spark, and
    pyoxigraph loads the same quads to the same disk. 5,000,000 quads need some minutes and 8 GB of disk.
    """
    from bench.history import AIMS, draw, run

    tables = lambda report: [list_figures(report, "history"), list_aims(report, AIMS)]  # noqa: E731
    show(run(quads, say), tables, json=json, plot=plot, draw=draw)


@benches.command()
def hour(
    minutes: Annotated[int, typer.Option(help="Simulated minutes, at 1,000 events a second.", min=2, max=1_440)] = 60,
    plot: Annotated[Path | None, _plot("Draw files and times into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The lake over time: the number of files and the time of queries at 1,000 events a second for an hour.

    There is a commit a second, with maintenance when it is due, as in production; while no maintenance runs, time is
    simulated as fast as possible. Three kinds of queries about the first minute are repeated. An hour needs 2 GB of
    disk and takes less than an hour.
    """
    from bench.hour import draw, make_tables, run

    show(run(minutes, say), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def zones(
    events: Annotated[int, typer.Option(help="Tweets of ten quads.", min=100)] = 10_000,
    count: Annotated[int, typer.Option("--zones", help="Number of zones.", min=2)] = 32,
    plot: Annotated[Path | None, _plot("Draw the loads into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """Load balancing: how evenly skewed tweets are spread over zones, by the rules of EventCloud's thesis and by ours.

    The deviation is the standard deviation of the zones' quads divided by their mean: 0 % if all hold the same, 566 %
    if one of 32 holds everything. *Static*: zones are split when all quads are there. *Dynamic*: zones are split and
    merged while events arrive.
    """
    from bench.zones import draw, make_tables, run

    show(run(events, count, say), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def fanout(
    clients: Annotated[
        list[int] | None,
        typer.Option(help="Number of clients. Repeatable: a run for each, and the growth.", show_default="1000"),
    ] = None,
    rate: Annotated[float, typer.Option(help="Events a second.", min=0.1)] = 10.0,
    seconds: Annotated[float, typer.Option(help="Seconds that are measured, after a warm-up.", min=0.1)] = 10.0,
    size: Annotated[int, typer.Option(help="Bytes of an event as it is published.", min=500)] = 500,
    buffer: Annotated[
        float | None,
        typer.Option(help="Buffer window that clients ask for, in seconds.", min=0, show_default="the stream's"),
    ] = None,
    compress: Annotated[bool, typer.Option("--compress", help="Clients accept compressed answers.")] = False,
    encoding: Annotated[Encoding, typer.Option(help="Compression of those answers.")] = Encoding.gzip,
    processes: Annotated[int, typer.Option(help="Edges on one port.", min=1)] = 1,
    against: Annotated[
        FanoutRival | None,
        typer.Option(help="Also measure nginx with nchan, with as many workers, under the same load."),
    ] = None,
    json: Json = False,
) -> None:
    """One stream to many SSE clients: losses, delays, and CPU beside a loop that only writes the same bytes.

    Edges, publisher and clients are processes of their own on this machine, and share it. A process holds 10,000
    clients, an edge 15,000; `ulimit -n` must allow that many open files.
    """
    from bench.fanout import FanoutOptions, ListenOptions, make_tables, run, sweep

    counts = clients or [1_000]
    listen = ListenOptions(buffer, encoding.value if compress else "identity")
    rival = against.value if against else ""
    options = FanoutOptions(counts[0], rate, seconds, listen, processes, size, against=rival)
    show(run(options, say) if len(counts) == 1 else sweep(options, counts, say), make_tables, json=json)


@benches.command()
def ztreamy(
    quick: Annotated[bool, typer.Option("--quick", help="Measure few points with few clients.")] = False,
    clients: Annotated[
        int | None,
        typer.Option(help="Largest number of clients.", min=3, show_default="40000, or 2000 if quick"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Seconds of each point.", min=0.5, show_default="20, or 3 if quick")
    ] = None,
    plot: Annotated[Path | None, _plot("Draw CPU and delays into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The experiments of figures 3 to 6 of the Ztreamy paper, beside its statements.

    More clients at 4 items a second; higher rates at 500 clients; one server against a server and two repeaters; buffer
    windows. Items are posts of 881 bytes that arrive as a Poisson process. A point takes 20 seconds more than its own;
    all of them take about 25 minutes.
    """
    from bench.ztreamy import QUICK, ZtreamyOptions, draw, make_tables, run

    usual = QUICK if quick else ZtreamyOptions()
    options = replace(usual, clients=clients or usual.clients, seconds=seconds or usual.seconds)
    show(run(options, say), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def edge(
    part: Annotated[
        list[Part] | None, typer.Option(help="Measure only this part; repeatable.", show_default="all")
    ] = None,
    json: Json = False,
) -> None:
    """The cost of authentication, policies, dialects and webhooks at an edge.

    A request with and without a token; a stream to clients that see all of it and to clients that do not; an event in
    each dialect, and its validation by shapes; webhooks to 100 targets, and to the same while ten of them hang.
    """
    from bench.edge import run

    parts = [each.value for each in part or list(Part)]
    show(run(parts, say), "edge", json=json)


@benches.command()
def continuous(
    workload: Annotated[Workload, typer.Option(help="Workload: see above.")] = Workload.PATHS,
    queries: Annotated[int | None, typer.Option(help="Number of queries.", min=10, show_default=_USUAL)] = None,
    triples: Annotated[int | None, typer.Option(help="Published triples.", min=1_000, show_default=_USUAL)] = None,
    strategy: Annotated[Strategy, typer.Option(help="How state is partitioned.")] = Strategy.CSBV,
    together: Annotated[int, typer.Option(help="Triples in an event.", min=1, max=1_000)] = 1,
    growth: Annotated[bool, typer.Option("--growth", help="Also measure 1,000 queries with as many answers.")] = False,
    seconds: Annotated[int, typer.Option(help="Seconds of `sliding`.", min=20, max=3_600)] = 90,
    against: Annotated[
        WindowRival | None,
        typer.Option(help="With `sliding`: also measure this library, over the same stream."),
    ] = None,
    json: Json = False,
) -> None:
    """Continuous queries: the real processes, from a publish over HTTP to the answer.

    Workloads, with their default sizes:

    `paths` that of Liarou, Idreos and Koubarakis, 100,000 paths of five patterns, 100,000 triples · `structures` 1,000
    queries, each of a structure of its own, 100,000 triples · `windowed` is `paths` with answers within 30,000
    positions, 500,000 triples · `sliding` one window of a minute that slides by a second, with a join of three patterns
    and an aggregate, over 2,000 triples a second.

    Every answer is compared with that of an independent evaluation, and some queries with pyoxigraph; a difference ends
    the run with an error.
    """
    from bench.continuous import ContinuousOptions, choose_aims, run
    from bench.continuous_sliding import run as run_sliding

    if against is not None and workload is not Workload.SLIDING:
        raise typer.BadParameter("only `--workload sliding` runs on others", param_hint="--against")
    if workload is Workload.SLIDING:
        report = run_sliding(seconds, say, None if against is None else against.value)
    else:
        rest = {"strategy": strategy.value, "together": together, "growth": growth}
        report = run(ContinuousOptions.of(workload.value, queries, triples, **rest), say)
    title = f"continuous, {workload.value}"
    show(report, lambda found: [list_figures(found, title), list_aims(found, choose_aims(found))], json=json)
