"""`export`: events of the lake into a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from triplewire.cli.options import Data, settings_of
from triplewire.cli.transfers import Moving, moving
from triplewire.codec.headers import instant
from triplewire.config import limits
from triplewire.model import parse_position
from triplewire.model.errors import BadRequest
from triplewire.transfer.formats import STANDARD, Format, shape_of

if TYPE_CHECKING:
    from triplewire.storage.lake.delta import DeltaLake


EXAMPLES = """
[bold]Examples[/bold]

Everything, as N-Quads with gzip:

    triplewire export everything.nq.gz

One stream of one day, as a table for pandas, DuckDB or Spark:

    triplewire export home.parquet --stream home --from 2026-11-15 --to 2026-11-16

After Ctrl-C, a crash or a full disk, go on:

    triplewire export everything.nq.gz --resume

Into another program, without what was said of the events:

    triplewire export - --format nquads --no-headers | sort -u | wc -l
"""


def add_to(app: typer.Typer) -> None:
    app.command(epilog=EXAMPLES)(export)


def export(
    file: Annotated[str, typer.Argument(help="Ends in .nq, .trig (also with .gz) or .parquet; - is standard output.")],
    format: Annotated[
        Optional[Format],  # noqa: UP045 - typer reads the annotation
        typer.Option("--format", help="In place of what the file's name says.", show_default="by the name"),
    ] = None,
    stream: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--stream", help="Only this stream; may be repeated."),
    ] = None,
    begins: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--from", help="Only what happened at this time or later, such as 2026-11-15T08:30:00Z."),
    ] = None,
    ends: Annotated[Optional[str], typer.Option("--to", help="Only what happened before this time.")] = None,  # noqa: UP045
    after: Annotated[str, typer.Option("--after", help="Only what comes after this position.")] = "earliest",
    upto: Annotated[Optional[str], typer.Option("--upto", help="Only what comes up to this position.")] = None,  # noqa: UP045
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Leave out stream, source, application and times of the events.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an export that was cut off.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin anew, in place of what is there.")] = False,
    data: Data = None,
) -> None:
    """Write events of the lake into a file: all of them, or those of a stream, a time, some positions.

    It reads the data directory itself, whether a broker runs or not, up to what is stored now.
    """
    from triplewire.storage.lake.entries import LakeEntries
    from triplewire.transfer.exports import Export, export_to_file, export_to_stream
    from triplewire.transfer.selections import Selection

    selection = Selection(
        tuple(stream or ()),
        None if begins is None else instant("--from", begins),
        None if ends is None else instant("--to", ends),
        parse_position(after),
        None if upto is None else parse_position(upto),
    )
    shape = shape_of(file, format)
    if shape.format is Format.PARQUET and no_headers:
        raise BadRequest("--no-headers is for N-Quads and TriG; in Parquet what is said of events are columns")
    asked = Export(selection, shape, Path(file), headers=not no_headers)
    pages = LakeEntries(_lake(data), limits.EXPORT_BYTES)
    with moving("exporting", file) as show:
        if file == STANDARD:
            steps = export_to_stream(pages, asked, sys.stdout.buffer)
        else:
            steps = export_to_file(pages, asked, resume=resume, overwrite=overwrite)
        for reached in steps:
            done = reached.after - asked.selection.after
            show(Moving(done, reached.upto - asked.selection.after, reached.events, reached.quads))


def _lake(data: Path | None) -> DeltaLake:
    from triplewire.storage.lake.delta import DeltaLake

    lake = DeltaLake(settings_of(data).lake)
    if lake.files().version < 0:
        raise BadRequest("there is no lake in the data directory; say where it is with --data")
    return lake
