"""`triplewire bench`: a command for each benchmark. A benchmark is imported when its command is run."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

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


_USUAL = "as many as the workload is about"


@benches.command()
def pipeline(
    events: Annotated[int, typer.Option(help="Events of five quads to publish in batches.", min=1_000)] = 50_000,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions, of ten shapes.", min=1)] = 1_000,
    soak: Annotated[float, typer.Option(help="Seconds to go on at half the top rate.", min=0)] = 0.0,
    json: Json = False,
) -> None:
    """The whole path: publish, log, match, deliver, and store."""
    from bench.pipeline import run

    show(run(events, subscriptions, soak, say), lambda report: [list_figures(report, "pipeline")], json=json)


@benches.command()
def sparql(
    quads: Annotated[int, typer.Option(help="Quads to publish, five in an event.", min=1_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="How often each query is timed.", min=1)] = 7,
    skip_spark: Annotated[bool, typer.Option("--skip-spark", help="Ask DuckDB alone.")] = False,
    plot: Annotated[Path | None, _plot("Draw the times into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """SPARQL over history: ten queries, beside pyoxigraph with the same data in the same run."""
    from bench.sparql import draw, make_tables, run

    show(run(quads, runs, say, spark=not skip_spark), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def match(
    workload: Annotated[str, typer.Option(help="Which subscriptions and events: see above.")] = "paths",
    subscriptions: Annotated[
        int | None, typer.Option(help="How many subscriptions stand.", min=10, show_default=_USUAL)
    ] = None,
    events: Annotated[int, typer.Option(help="Events of five quads in each run.", min=1_000)] = 200_000,
    runs: Annotated[int, typer.Option(help="How often that is timed, with new events each time.", min=1)] = 5,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also time 1,000 subscriptions that have as many matches.")
    ] = False,
    plot: Annotated[Path | None, _plot("Draw the rates into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """Matching alone: the pipeline's own transform in Spark, beside pyoxigraph merely parsing the events.

    Workloads, with the subscriptions that each is about:

    `paths` 100,000 paths of five patterns between two constants · `mixed` 100,000 of 100 structures, filters of every
    kind · `distinct` 1,000, each of a structure of its own · `sensors` 100,000, one of 1,000 sensors and a threshold ·
    `ranges` 100,000, a threshold alone · `classes` 100,000, what is below a class · `everything` `mixed`, and 5 %
    accept every event · `residual` 10,000 of 100 structures that no index decides.

    A run of fewer than 200,000 events measures mostly how long Spark takes to start a job. What is matched is checked
    on a sample of events against pyoxigraph; a difference ends the run with an error.
    """
    from bench.match import MatchOptions, draw, run
    from bench.match_workloads import find_workload

    options = MatchOptions(workload, subscriptions or find_workload(workload).usual, events, runs, growth)
    title = f"match, {workload}"
    show(run(options, say), lambda report: [list_figures(report, title)], json=json, plot=plot, draw=draw)


@benches.command()
def operators(
    most: Annotated[int, typer.Option(help="Subscriptions above which nothing is measured.", min=500)] = 100_000,
    matches: Annotated[int, typer.Option(help="Most events of a measurement, a match each.", min=1)] = 300,
    json: Json = False,
) -> None:
    """Ontological and bag operators: time for each match, beside table 15 of the thesis on knowledge-based networks.

    Subscriptions all differ, by a number that each asks for too. An event has one match. `ms` is for events that come
    one by one, for three seconds at most; `together` is for events in one batch.
    """
    from bench.operators import make_tables, run

    show(run(most, matches, say), make_tables, json=json)


@benches.command()
def registration(
    subscriptions: Annotated[int, typer.Option(help="Subscriptions of each bulk.", min=1_000)] = 100_000,
    singles: Annotated[int, typer.Option(help="Subscriptions that are made one after the other.", min=10)] = 300,
    json: Json = False,
) -> None:
    """Subscriptions over HTTP: in bulk, of one shape, of a thousand shapes, and as filters; and one by one."""
    from bench.registration import run

    show(run(subscriptions, singles, say), lambda report: [list_figures(report, "registration")], json=json)


@benches.command()
def history(
    quads: Annotated[int, typer.Option(help="Quads to take in, eight in an event.", min=10_000)] = 1_000_000,
    plot: Annotated[Path | None, _plot("Draw what was reached, beside the aims, into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The lake: how fast `store` takes quads in, beside pyoxigraph's bulk load, and what they take on the disk.

    A day of sensor observations is written to a log first. Then the pipeline's own `store` query takes it in, on Spark,
    and pyoxigraph loads the same quads to the same disk. 5,000,000 quads need some minutes and 8 GB of disk.
    """
    from bench.history import AIMS, draw, run

    tables = lambda report: [list_figures(report, "history"), list_aims(report, AIMS)]  # noqa: E731
    show(run(quads, say), tables, json=json, plot=plot, draw=draw)


@benches.command()
def hour(
    minutes: Annotated[int, typer.Option(help="Minutes that go by, at 1,000 events a second.", min=2, max=1_440)] = 60,
    plot: Annotated[Path | None, _plot("Draw files and times into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The lake over time: do files stay few, and queries quick, at 1,000 events a second for an hour?

    A commit a second, and housekeeping beside it when it is due, as in production; as fast as the machine goes while
    there is nothing to keep in order. Three kinds of questions, all about the first minute, are asked again and again.
    It needs less time than it simulates, and 2 GB of disk for an hour.
    """
    from bench.hour import draw, make_tables, run

    show(run(minutes, say), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def zones(
    events: Annotated[int, typer.Option(help="Tweets, of nine quads and one that counts them.", min=100)] = 10_000,
    count: Annotated[int, typer.Option("--zones", help="Zones to spread them over.", min=2)] = 32,
    plot: Annotated[Path | None, _plot("Draw the loads into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """Load balancing: how evenly skewed tweets lie in zones, with the rules of EventCloud's thesis and with ours.

    The deviation is the standard deviation of the zones' quads by their mean: 0 % where all hold the same, 566 % where
    one of 32 holds everything. *Static*: all quads are there, then zones are split. *Dynamic*: zones are split and
    merged while events come in.
    """
    from bench.zones import draw, make_tables, run

    show(run(events, count, say), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def fanout(
    clients: Annotated[
        list[int] | None,
        typer.Option(help="How many listen. Given more than once: a run for each, and growth.", show_default="1000"),
    ] = None,
    rate: Annotated[float, typer.Option(help="Events a second.", min=0.1)] = 10.0,
    seconds: Annotated[float, typer.Option(help="How long is measured, after a warm-up.", min=0.1)] = 10.0,
    size: Annotated[int, typer.Option(help="Bytes of an event as it is published.", min=500)] = 500,
    buffer: Annotated[
        float | None,
        typer.Option(help="Buffer window that clients ask for, in seconds.", min=0, show_default="the stream's"),
    ] = None,
    compress: Annotated[bool, typer.Option("--compress", help="Clients take compressed answers.")] = False,
    encoding: Annotated[Encoding, typer.Option(help="How they are compressed then.")] = Encoding.gzip,
    processes: Annotated[int, typer.Option(help="Edges on one port.", min=1)] = 1,
    against: Annotated[
        FanoutRival | None,
        typer.Option(help="Also measure nginx with nchan, with as many workers, under the same load."),
    ] = None,
    json: Json = False,
) -> None:
    """One stream to many SSE clients: what is lost, delays, and CPU beside a loop that merely writes the same bytes.

    Edges, publisher and clients are processes of their own on this machine; the figures include all of them. A process
    of clients holds 10,000, an edge 15,000. `ulimit -n` must allow that many open files.
    """
    from bench.fanout import FanoutOptions, ListenOptions, make_tables, run, sweep
    from bench.links import exit_on_sigterm

    exit_on_sigterm()
    counts = clients or [1_000]
    listen = ListenOptions(buffer, encoding.value if compress else "identity")
    rival = against.value if against else ""
    options = FanoutOptions(counts[0], rate, seconds, listen, processes, size, against=rival)
    show(run(options, say) if len(counts) == 1 else sweep(options, counts, say), make_tables, json=json)


@benches.command()
def ztreamy(
    quick: Annotated[bool, typer.Option("--quick", help="Few points, few clients, some seconds each.")] = False,
    clients: Annotated[
        int | None,
        typer.Option(help="No point has more clients than this.", min=3, show_default="40000, or 2000 if quick"),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long each point is measured.", min=0.5, show_default="20, or 3 if quick")
    ] = None,
    plot: Annotated[Path | None, _plot("Draw CPU and delays into this SVG file.")] = None,
    json: Json = False,
) -> None:
    """The experiments of the paper on Ztreamy, figures 3 to 6, beside what it says of them.

    Clients up at 4 items a second; rate up at 500 clients; one server against one and two repeaters; buffer windows.
    Items are posts of 881 bytes that come as a Poisson process has them. A point takes its seconds and some 20 more,
    all of them together about 25 minutes.
    """
    from bench.links import exit_on_sigterm
    from bench.ztreamy import QUICK, ZtreamyOptions, draw, make_tables, run

    exit_on_sigterm()
    usual = QUICK if quick else ZtreamyOptions()
    options = replace(usual, clients=clients or usual.clients, seconds=seconds or usual.seconds)
    show(run(options, say), make_tables, json=json, plot=plot, draw=draw)


@benches.command()
def doors(
    part: Annotated[
        list[Part] | None, typer.Option(help="Measure this alone; may be given more than once.", show_default="all")
    ] = None,
    json: Json = False,
) -> None:
    """What it costs to let people in, to show them what they may see, and to speak their dialects.

    A request with and without a token; a stream to those who see all of it and to those who do not; an event in each
    dialect, and judged by shapes; webhooks to a hundred targets, and to the same when ten of them hang.
    """
    from bench.doors import run
    from bench.links import exit_on_sigterm

    exit_on_sigterm()
    parts = [each.value for each in part or list(Part)]
    show(run(parts, say), lambda report: [list_figures(report, "doors")], json=json)


@benches.command()
def continuous(
    workload: Annotated[Workload, typer.Option(help="Which questions and triples: see above.")] = Workload.PATHS,
    queries: Annotated[int | None, typer.Option(help="How many questions stand.", min=10, show_default=_USUAL)] = None,
    triples: Annotated[
        int | None, typer.Option(help="Triples that are published.", min=1_000, show_default=_USUAL)
    ] = None,
    strategy: Annotated[Strategy, typer.Option(help="How state is spread.")] = Strategy.CSBV,
    together: Annotated[int, typer.Option(help="Triples in an event.", min=1, max=1_000)] = 1,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also time 1,000 questions that have as many answers.")
    ] = False,
    seconds: Annotated[int, typer.Option(help="How long `sliding` goes on.", min=20, max=3_600)] = 90,
    against: Annotated[
        WindowRival | None,
        typer.Option(help="With `sliding`: the same question to this library, over the same stream."),
    ] = None,
    json: Json = False,
) -> None:
    """Questions across events: the real processes, from a publish over HTTP to the answer.

    Workloads, with the questions and triples that each is about:

    `paths` that of Liarou, Idreos and Koubarakis, 100,000 paths of five patterns, 100,000 triples · `structures` 1,000
    questions, each of a structure of its own, 100,000 triples · `windowed` `paths` whose pieces lie within 30,000
    positions, 500,000 triples · `sliding` one window of a minute by a second, with a join of three and an aggregate,
    over 2,000 triples a second.

    Every answer is held to what is found beside the engine, and a sample of questions to pyoxigraph; a difference ends
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
