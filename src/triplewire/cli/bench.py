"""`bench`: measure the real processes over real sockets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from triplewire.cli.bench_continuous import continuous
from triplewire.cli.common import Json
from triplewire.cli.doors import doors
from triplewire.cli.fanout import fanout, ztreamy
from triplewire.cli.measures import aims, by_minute, costs, deviations, table
from triplewire.cli.reports import say, tell


def add_to(app: typer.Typer) -> None:
    app.add_typer(benches, name="bench")


benches = typer.Typer(help="Measure Triplewire on this machine: real processes, real sockets.", no_args_is_help=True)


@benches.callback()
def _group() -> None:
    """Measure Triplewire on this machine: real processes, real sockets."""


@benches.command()
def pipeline(
    events: Annotated[int, typer.Option(help="Events of five quads to publish in batches.", min=1_000)] = 50_000,
    subscriptions: Annotated[int, typer.Option(help="Subscriptions, of ten shapes.", min=1)] = 1_000,
    soak: Annotated[float, typer.Option(help="Seconds to go on at half the top rate.", min=0)] = 0.0,
    json: Json = False,
) -> None:
    """The whole path: publish, log, match, deliver, and store."""
    from triplewire.bench.pipeline import Plan, run

    report = run(Plan(events, subscriptions, soak), say)
    tell(report, lambda: [table(report)], json=json)


@benches.command()
def sparql(
    quads: Annotated[int, typer.Option(help="Quads to publish, five in an event.", min=1_000)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="How often each query is timed.", min=1)] = 7,
    skip_spark: Annotated[bool, typer.Option("--skip-spark", help="Ask DuckDB alone.")] = False,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw the times into this SVG file.", dir_okay=False, writable=True),
    ] = None,
    json: Json = False,
) -> None:
    """SPARQL over history: ten queries, beside pyoxigraph with the same data in the same run."""
    from triplewire.bench.sparql import Plan, run
    from triplewire.bench.sparql_plot import svg
    from triplewire.cli.figures import figures

    report = run(Plan(quads, runs, not skip_spark), say)
    tell(report, lambda: [figures(report)], json=json, plot=plot, svg=svg)


@benches.command()
def match(
    workload: Annotated[str, typer.Option(help="Which subscriptions and events: see above.")] = "paths",
    subscriptions: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="How many subscriptions stand.", min=10, show_default="as many as the workload is about"),
    ] = None,
    events: Annotated[int, typer.Option(help="Events of five quads in each run.", min=1_000)] = 200_000,
    runs: Annotated[int, typer.Option(help="How often that is timed, with new events each time.", min=1)] = 5,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also time 1,000 subscriptions that have as many matches.")
    ] = False,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw the rates into this SVG file.", dir_okay=False, writable=True),
    ] = None,
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
    from triplewire.bench.match import Plan, run
    from triplewire.bench.match_plot import svg
    from triplewire.bench.match_workloads import usual

    plan = Plan(workload, subscriptions or usual(workload), events, runs, growth)
    report = run(plan, say)
    tell(report, lambda: [table(report, f"match, {workload}")], json=json, plot=plot, svg=svg)


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
    from triplewire.bench.operators import Plan, run

    sizes = tuple(size for size in Plan().sizes if size <= most)
    report = run(Plan(sizes, matches), say)
    tell(report, lambda: [costs(report)], json=json)


@benches.command()
def registration(
    subscriptions: Annotated[int, typer.Option(help="Subscriptions of each bulk.", min=1_000)] = 100_000,
    singles: Annotated[int, typer.Option(help="Subscriptions that are made one after the other.", min=10)] = 300,
    json: Json = False,
) -> None:
    """Subscriptions over HTTP: in bulk, of one shape, of a thousand shapes, and as filters; and one by one."""
    from triplewire.bench.registration import Plan, run

    report = run(Plan(subscriptions, singles), say)
    tell(report, lambda: [table(report, "registration")], json=json)


@benches.command()
def history(
    quads: Annotated[int, typer.Option(help="Quads to take in, eight in an event.", min=10_000)] = 1_000_000,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw what was reached, beside the aims, into this SVG file.", dir_okay=False),
    ] = None,
    json: Json = False,
) -> None:
    """The lake: how fast `store` takes quads in, beside pyoxigraph's bulk load, and what they take on the disk.

    A day of sensor observations is written to a log first. Then the pipeline's own `store` query takes it in, on Spark,
    and pyoxigraph loads the same quads to the same disk. 5,000,000 quads need some minutes and 8 GB of disk.
    """
    from triplewire.bench.history import Plan, run
    from triplewire.bench.history_aims import AIMS, svg

    report = run(Plan(quads), say)
    tell(report, lambda: [table(report, "history"), aims(report, AIMS)], json=json, plot=plot, svg=svg)


@benches.command()
def hour(
    minutes: Annotated[int, typer.Option(help="Minutes that go by, at 1,000 events a second.", min=2, max=1_440)] = 60,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw files and times into this SVG file.", dir_okay=False, writable=True),
    ] = None,
    json: Json = False,
) -> None:
    """The lake over time: do files stay few, and queries quick, at 1,000 events a second for an hour?

    A commit a second, and housekeeping beside it when it is due, as in production; as fast as the machine goes while
    there is nothing to keep in order. Three kinds of questions, all about the first minute, are asked again and again.
    It needs less time than it simulates, and 2 GB of disk for an hour.
    """
    from triplewire.bench.hour import Plan, run
    from triplewire.bench.hour_plot import svg

    report = run(Plan(minutes), say)
    tell(
        report,
        lambda: [by_minute(report), table({name: each for name, each in report.items() if name != "samples"}, "hour")],
        json=json,
        plot=plot,
        svg=svg,
    )


@benches.command()
def zones(
    events: Annotated[int, typer.Option(help="Tweets, of nine quads and one that counts them.", min=100)] = 10_000,
    count: Annotated[int, typer.Option("--zones", help="Zones to spread them over.", min=2)] = 32,
    plot: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option("--plot", help="Draw the loads into this SVG file.", dir_okay=False, writable=True),
    ] = None,
    json: Json = False,
) -> None:
    """Load balancing: how evenly skewed tweets lie in zones, with the rules of EventCloud's thesis and with ours.

    The deviation is the standard deviation of the zones' quads by their mean: 0 % where all hold the same, 566 % where
    one of 32 holds everything. *Static*: all quads are there, then zones are split. *Dynamic*: zones are split and
    merged while events come in.
    """
    from triplewire.bench.zones import Plan, run
    from triplewire.bench.zones_plot import svg

    report = run(Plan(events, count), say)
    tell(report, lambda: [deviations(report)], json=json, plot=plot, svg=svg)


for _command in (fanout, ztreamy, doors, continuous):
    benches.command()(_command)
