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
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from triplewire.cli.common import DEFAULT_URL, Data, Url, load_settings, open_client
from triplewire.model.errors import BadRequest, InputError
from triplewire.model.positions import parse_position
from triplewire.service.transfer.formats import STANDARD_STREAM, FileFormat, choose_encoding

if TYPE_CHECKING:
    from triplewire.service.transfer.events import ImportFault
    from triplewire.service.transfer.importer import Import
    from triplewire.storage.lake.delta import DeltaLake

EXPORT_BYTES: Final = 32 * 1024 * 1024
"""Bytes of text that an export reads at once. About ten times as much is in memory for a moment."""

FAULTS_SHOWN: Final = 20
"""Faults of a file that are printed one by one; the others are counted, and are in the file of rejects."""

REJECTED = 3
"""The exit code if a part of the file was rejected and the rest published."""


@dataclass(frozen=True)
class TransferProgress:
    """Progress as `done` of `total`, in any unit, and the events and quads transferred so far."""

    done: int
    total: int
    events: int
    quads: int


@contextmanager
def show_progress(verb: str, name: str) -> Iterator[Callable[[TransferProgress], None]]:
    """Yield a function that shows progress on standard error: a bar on a terminal, and in the end a summary line."""
    console = Console(stderr=True, highlight=False)
    start, last = time.monotonic(), TransferProgress(0, 0, 0, 0)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"{verb} {name}", total=None)

        def show(now: TransferProgress) -> None:
            nonlocal last
            last = now
            rate = now.events / max(time.monotonic() - start, 0.001)
            text = f"{verb} {name}: {now.events:,} events, {rate:,.0f}/s"
            progress.update(task, description=text, completed=now.done, total=max(now.total, 1))

        yield show
    seconds = time.monotonic() - start
    console.print(f"{name}: {last.events:,} events, {last.quads:,} quads in {seconds:.1f} s", soft_wrap=True)


EXPORT_EXAMPLES = """
[bold]Examples[/bold]

All events, as N-Quads with gzip:

    triplewire export everything.nq.gz

One stream on one day, as a table for pandas, DuckDB or Spark:

    triplewire export home.parquet --stream home --from 2026-11-15 --to 2026-11-16

Resume after Ctrl-C, a crash or a full disk:

    triplewire export everything.nq.gz --resume

Into another program, without event headers:

    triplewire export - --format nquads --no-headers | sort -u | wc -l
"""


def export(
    file: Annotated[
        str, typer.Argument(help="File that ends in .nq, .trig, .nq.gz, .trig.gz or .parquet; - is standard output.")
    ],
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Format, whatever the file name.", show_default="by the file name"),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", help="Only events of this stream; repeatable."),
    ] = None,
    begins: Annotated[
        str | None,
        typer.Option("--from", help="Only events at this time or later, such as 2026-11-15T08:30:00Z."),
    ] = None,
    ends: Annotated[str | None, typer.Option("--to", help="Only events before this time.")] = None,
    after: Annotated[str, typer.Option("--after", help="Only events after this position.")] = "earliest",
    through: Annotated[
        str | None, typer.Option("--through", help="Only events up to this position, inclusive.")
    ] = None,
    no_headers: Annotated[
        bool, typer.Option("--no-headers", help="Omit stream, source, application and times of the events.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an export that was interrupted.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file, if it exists.")] = False,
    data: Data = None,
) -> None:
    """Export events of the lake to a file: all of them, or a selection by stream, time or position.

    It reads the data directory, with or without a running broker, up to the events that are stored now.
    """
    from triplewire.rdf.headers import parse_time
    from triplewire.service.transfer.exporter import Export, Selection, export_to_file, export_to_stream
    from triplewire.storage.lake.entries import LakeEntries

    selection = Selection(
        tuple(stream or ()),
        None if begins is None else parse_time("--from", begins),
        None if ends is None else parse_time("--to", ends),
        parse_position(after),
        None if through is None else parse_position(through),
    )
    encoding = choose_encoding(file, format)
    if encoding.format is FileFormat.PARQUET and no_headers:
        raise BadRequest("--no-headers is for N-Quads and TriG; in Parquet headers are columns")
    export = Export(selection, encoding, Path(file), headers=not no_headers)
    pages = LakeEntries(_lake(data), EXPORT_BYTES)
    with show_progress("exporting", file) as show:
        if file == STANDARD_STREAM:
            steps = export_to_stream(pages, export, sys.stdout.buffer)
        else:
            steps = export_to_file(pages, export, resume=resume, overwrite=overwrite)
        for step in steps:
            done, total = (each - selection.after for each in (step.after, step.through))
            show(TransferProgress(done, total, step.events, step.quads))


def _lake(data: Path | None) -> DeltaLake:
    from triplewire.storage.lake.delta import DeltaLake

    lake = DeltaLake(load_settings(data).lake)
    if lake.files().version < 0:
        raise BadRequest("there is no lake in the data directory; name another directory with --data")
    return lake


class OnError(StrEnum):
    STOP = "stop"
    SKIP = "skip"


IMPORT_EXAMPLES = """
[bold]Examples[/bold]

An export, into another broker:

    triplewire import everything.nq.gz --url http://localhost:8081

A file of another program, into one stream; bad lines are written to a file:

    triplewire import readings.nq --stream home --on-error skip --rejects broken.nq

Resume after Ctrl-C, a crash, or a broker that was down; nothing is published twice:

    triplewire import everything.nq.gz --resume
"""


def import_command(
    file: Annotated[
        str, typer.Argument(help="File that ends in .nq, .trig, .nq.gz, .trig.gz or .parquet; - is standard input.")
    ],
    format: Annotated[
        FileFormat | None,
        typer.Option("--format", help="Format, whatever the file name.", show_default="by the file name"),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option("--stream", help="Publish all events to this stream, not to those that the file names."),
    ] = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Publish nothing of a file with faults, or skip the faulty parts.")
    ] = OnError.STOP,
    rejects: Annotated[
        Path | None,
        typer.Option("--rejects", help="With --on-error skip: write faulty parts to this file.", dir_okay=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an import that was interrupted.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Ignore an interrupted import, and publish everything.")
    ] = False,
    url: Url = DEFAULT_URL,
) -> None:
    """Publish the events of a file, written by `export` or by another program, to a running broker.

    Events keep their ids, streams, sources, applications and times, and the order of the file.
    """
    from triplewire.service.transfer.importer import Import
    from triplewire.storage.registry.streams import check_stream_name

    if rejects is not None and on_error is OnError.STOP:
        raise BadRequest("--rejects needs --on-error skip: otherwise nothing is published, and all faults are printed")
    encoding = choose_encoding(file, format)
    with _input_file(file) as path:
        wanted = Import(path, encoding, None if stream is None else check_stream_name(stream))
        if on_error is OnError.STOP:
            _check(wanted, file)
        keep_state = file != STANDARD_STREAM
        with _fault_handler(file, on_error, rejects, resume=resume) as handle:
            faults = publish_file(wanted, file, url, handle, keep_state=keep_state, resume=resume, restart=restart)
    if faults:
        typer.secho(f"triplewire: {faults} faults in {file}; all other events are published", fg="red", err=True)
        raise typer.Exit(REJECTED)


def publish_file(
    wanted: Import,
    name: str,
    url: str,
    handle: Callable[[ImportFault], None],
    *,
    keep_state: bool = True,
    resume: bool = False,
    restart: bool = False,
) -> int:
    """Publish a file, with the progress on standard error; return the number of faults, each of which was handled."""
    from triplewire.service.transfer.importer import import_file, open_reader, open_state, start_import

    state = open_state(wanted.path)
    if restart:
        state.remove()
    progress = start_import(wanted, state, resume=resume)
    size = open_reader(wanted).size() or 0
    saved = state if keep_state else None
    with open_client(url) as broker, show_progress("importing", name) as show:
        for step in import_file(broker, wanted, progress, state=saved, report=handle, wait=time.sleep):
            progress = step
            show(TransferProgress(min(step.position.block.offset, size), size, step.events, step.quads))
    return progress.faults


@contextmanager
def _input_file(name: str) -> Iterator[Path]:
    """Yield the file. Standard input is copied to one, because it is checked before any of it is published."""
    if name != STANDARD_STREAM:
        path = Path(name)
        if not path.is_file():
            raise BadRequest(f"{name}: no such file")
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="triplewire-") as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        yield Path(copy.name)


def _check(wanted: Import, name: str) -> None:
    """Print the faults of a file. Raises InputError if there are any."""
    from triplewire.service.transfer.importer import find_faults

    count = 0
    for count, fault in enumerate(find_faults(wanted), 1):
        if count <= FAULTS_SHOWN:
            typer.echo(fault.describe(name), err=True)
    if count:
        raise InputError(f"{count} faults in {name}; nothing was published. --on-error skip publishes all other events")


@contextmanager
def _fault_handler(
    name: str, on_error: OnError, rejects: Path | None, *, resume: bool
) -> Iterator[Callable[[ImportFault], None]]:
    with ExitStack() as closing:
        out = None if rejects is None else closing.enter_context(rejects.open("ab" if resume else "wb"))
        count = 0

        def handle(fault: ImportFault) -> None:
            nonlocal count
            if on_error is OnError.STOP:
                raise InputError(f"{fault.describe(name)}\nthe file has changed since it was checked")
            count += 1
            if count <= FAULTS_SHOWN:
                typer.echo(fault.describe(name), err=True)
            if out is not None and fault.text:
                out.write(fault.text.rstrip(b"\r\n") + b"\n")
                out.flush()

        yield handle
