"""`bench continuous`: its options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Optional

import typer

from triplewire.cli.common import Json
from triplewire.cli.measures import aims, table
from triplewire.cli.reports import say, tell


class Workload(StrEnum):
    PATHS = "paths"
    STRUCTURES = "structures"
    WINDOWED = "windowed"
    SLIDING = "sliding"


class Strategy(StrEnum):
    CSBV = "csbv"
    CQC = "cqc"


class Rival(StrEnum):
    RSP_JS = "rsp-js"


def continuous(
    workload: Annotated[Workload, typer.Option(help="Which questions and triples: see above.")] = Workload.PATHS,
    queries: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="How many questions stand.", min=10, show_default="as many as the workload is about"),
    ] = None,
    triples: Annotated[
        Optional[int],  # noqa: UP045 - typer reads the annotation
        typer.Option(help="Triples that are published.", min=1_000, show_default="as many as the workload is about"),
    ] = None,
    strategy: Annotated[Strategy, typer.Option(help="How state is spread.")] = Strategy.CSBV,
    together: Annotated[int, typer.Option(help="Triples in an event.", min=1, max=1_000)] = 1,
    growth: Annotated[
        bool, typer.Option("--growth", help="Also time 1,000 questions that have as many answers.")
    ] = False,
    seconds: Annotated[int, typer.Option(help="How long `sliding` goes on.", min=20, max=3_600)] = 90,
    against: Annotated[
        Optional[Rival],  # noqa: UP045 - typer reads the annotation
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
    from triplewire.bench.continuous_aims import aims as wanted

    if against is not None and workload is not Workload.SLIDING:
        raise typer.BadParameter("only `--workload sliding` runs on others", param_hint="--against")
    if workload is Workload.SLIDING:
        from triplewire.bench.continuous_sliding import run as slide

        report = slide(seconds, say, None if against is None else against.value)
    else:
        from triplewire.bench.continuous import Plan, run

        plan = Plan.of(workload.value, queries, triples, strategy=strategy.value, together=together, growth=growth)
        report = run(plan, say)
    tell(report, lambda: [table(report, f"continuous, {workload.value}"), aims(report, wanted(report))], json=json)
