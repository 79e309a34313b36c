"""`export` and `import`: events of the lake into a file, and events of a file into a broker."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Optional

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from triplewire.cli.common import DEFAULT_URL, Data, Url, load_settings
from triplewire.model import parse_position
from triplewire.model.errors import BadRequest, InputError
from triplewire.rdf.headers import parse_time
from triplewire.service.transfer.formats import STANDARD_STREAM, FileFormat, choose_encoding

if TYPE_CHECKING:
    from triplewire.service.transfer.events import ImportFault
    from triplewire.service.transfer.importer import Import, ImportProgress
    from triplewire.storage.lake.delta import DeltaLake

EXPORT_BYTES: Final = 32 * 1024 * 1024
"""Text of such events. About ten times as much is in memory for a moment."""

FAULTS_SHOWN: Final = 20
"""Faults of a file that are told one by one on a terminal; the others are counted, and are in the file of rejects."""


# Transfers: how far an export or an import is, on a terminal, and what became of it.


@dataclass(frozen=True)
class TransferProgress:
    """`done` of `total`, in whatever unit; and what has been moved."""

    done: int
    total: int
    events: int
    quads: int


@contextmanager
def show_progress(verb: str, name: str) -> Iterator[Callable[[TransferProgress], None]]:
    """Shows, on standard error, what it is told: a bar on a terminal, and everywhere a line in the end."""
    console = Console(stderr=True, highlight=False)
    began, last = time.monotonic(), TransferProgress(0, 0, 0, 0)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{verb} {name}", total=None)

        def show(now: TransferProgress) -> None:
            nonlocal last
            last = now
            rate = now.events / max(time.monotonic() - began, 0.001)
            words = f"{verb} {name}: {now.events:,} events, {rate:,.0f}/s"
            progress.update(task, description=words, completed=now.done, total=max(now.total, 1))

        yield show
    seconds = time.monotonic() - began
    console.print(f"{name}: {last.events:,} events, {last.quads:,} quads in {seconds:.1f} s", soft_wrap=True)


EXPORT_EXAMPLES = """
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


def add_export_command(app: typer.Typer) -> None:
    app.command(epilog=EXPORT_EXAMPLES)(export)


def export(
    file: Annotated[str, typer.Argument(help="Ends in .nq, .trig (also with .gz) or .parquet; - is standard output.")],
    format: Annotated[
        Optional[FileFormat],  # noqa: UP045 - typer reads the annotation
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
    from triplewire.service.transfer.exporter import Export, Selection, export_to_file, export_to_stream
    from triplewire.storage.lake.entries import LakeEntries

    selection = Selection(
        tuple(stream or ()),
        None if begins is None else parse_time("--from", begins),
        None if ends is None else parse_time("--to", ends),
        parse_position(after),
        None if upto is None else parse_position(upto),
    )
    shape = choose_encoding(file, format)
    if shape.format is FileFormat.PARQUET and no_headers:
        raise BadRequest("--no-headers is for N-Quads and TriG; in Parquet what is said of events are columns")
    asked = Export(selection, shape, Path(file), headers=not no_headers)
    pages = LakeEntries(_lake(data), EXPORT_BYTES)
    with show_progress("exporting", file) as show:
        if file == STANDARD_STREAM:
            steps = export_to_stream(pages, asked, sys.stdout.buffer)
        else:
            steps = export_to_file(pages, asked, resume=resume, overwrite=overwrite)
        for reached in steps:
            done = reached.after - asked.selection.after
            show(TransferProgress(done, reached.upto - asked.selection.after, reached.events, reached.quads))


def _lake(data: Path | None) -> DeltaLake:
    from triplewire.storage.lake.delta import DeltaLake

    lake = DeltaLake(load_settings(data).lake)
    if lake.files().version < 0:
        raise BadRequest("there is no lake in the data directory; say where it is with --data")
    return lake


# `import`: events of a file into a broker.

REJECTED = 3
"""The exit code where some of the file was rejected, and the rest is in."""


class OnError(StrEnum):
    """What to do about what is broken in a file."""

    STOP = "stop"
    SKIP = "skip"


IMPORT_EXAMPLES = """
[bold]Examples[/bold]

What was exported, into another broker:

    triplewire import everything.nq.gz --url http://localhost:8081

What another program wrote, into one stream; lines that are broken are kept for later:

    triplewire import readings.nq --stream home --on-error skip --rejects broken.nq

After Ctrl-C, a crash, or when the broker was away, go on; nothing is published twice:

    triplewire import everything.nq.gz --resume
"""


def add_import_command(app: typer.Typer) -> None:
    app.command("import", epilog=IMPORT_EXAMPLES)(import_command)


def import_command(
    file: Annotated[str, typer.Argument(help="Ends in .nq, .trig (also with .gz) or .parquet; - is standard input.")],
    format: Annotated[
        Optional[FileFormat],  # noqa: UP045 - typer reads the annotation
        typer.Option("--format", help="In place of what the file's name says.", show_default="by the name"),
    ] = None,
    stream: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--stream", help="The stream for all events, in place of those that the file says."),
    ] = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Publish nothing of a file with faults, or skip what is broken.")
    ] = OnError.STOP,
    rejects: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--rejects", help="With --on-error skip: a file for what is broken.", dir_okay=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an import that was cut off.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Forget an import that was cut off, and publish everything.")
    ] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Publish the events of a file, as `export` or other programs write them, to a broker that runs.

    They keep their ids, streams, sources, applications and times, and come in the order of the file.
    """
    from triplewire.service.transfer.importer import Import
    from triplewire.storage.registry.streams import check_stream_name

    if rejects is not None and on_error is OnError.STOP:
        raise BadRequest("--rejects is for --on-error skip: otherwise nothing is published, and all faults are told")
    shape = choose_encoding(file, format)
    with _file(file) as path:
        wanted = Import(path, shape, None if stream is None else check_stream_name(stream))
        if on_error is OnError.STOP:
            _check(wanted, file)
        keeping = file != STANDARD_STREAM
        with _telling(file, on_error, rejects, resume=resume) as tell:
            faults = _run(wanted, file, url, tell, keeping=keeping, resume=resume, restart=restart)
    if faults:
        typer.secho(f"triplewire: {faults} faults in {file}; everything else is in", fg="red", err=True)
        raise typer.Exit(REJECTED)


def _run(
    wanted: Import,
    name: str,
    url: str,
    tell: Callable[[ImportFault], None],
    *,
    keeping: bool,
    resume: bool,
    restart: bool,
) -> int:
    from triplewire.client import Client
    from triplewire.service.transfer.importer import import_file, open_reader, open_state, start_import

    kept = open_state(wanted.path)
    if restart:
        kept.forget()
    progress = start_import(wanted, kept, resume=resume)
    size = open_reader(wanted).size() or 0
    with Client(url) as broker, show_progress("importing", name) as show:
        steps = import_file(broker, wanted, progress, kept=kept if keeping else None, tell=tell, wait=time.sleep)
        for progress in steps:
            show(_progress_of(progress, size))
    return progress.faults


def _progress_of(progress: ImportProgress, size: int) -> TransferProgress:
    return TransferProgress(min(progress.mark.spot.offset, size), size, progress.events, progress.quads)


@contextmanager
def _file(name: str) -> Iterator[Path]:
    """The file, or what standard input says: that is looked through before any of it is published, so it is kept."""
    if name != STANDARD_STREAM:
        path = Path(name)
        if not path.is_file():
            raise BadRequest(f"{name}: there is no such file")
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="triplewire-") as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        kept.flush()
        yield Path(kept.name)


def _check(wanted: Import, name: str) -> None:
    """Raises InputError if anything is wrong in the file, after telling what."""
    from triplewire.service.transfer.importer import find_faults

    count = 0
    for count, fault in enumerate(find_faults(wanted), 1):
        if count <= FAULTS_SHOWN:
            typer.echo(fault.told(name), err=True)
    if count:
        raise InputError(f"{count} faults in {name}; nothing was published. --on-error skip publishes the others")


@contextmanager
def _telling(
    name: str, on_error: OnError, rejects: Path | None, *, resume: bool
) -> Iterator[Callable[[ImportFault], None]]:
    with ExitStack() as closing:
        out = None if rejects is None else closing.enter_context(rejects.open("ab" if resume else "wb"))
        told = 0

        def tell(fault: ImportFault) -> None:
            nonlocal told
            if on_error is OnError.STOP:
                raise InputError(f"{fault.told(name)}\nthe file has changed since it was looked through")
            told += 1
            if told <= FAULTS_SHOWN:
                typer.echo(fault.told(name), err=True)
            if out is not None and fault.text:
                out.write(fault.text.rstrip(b"\r\n") + b"\n")
                out.flush()

        yield tell
