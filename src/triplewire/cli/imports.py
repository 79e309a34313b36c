"""`import`: events of a file into a broker."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from triplewire.cli.options import DEFAULT_URL, Url
from triplewire.cli.transfers import Moving, moving
from triplewire.config import limits
from triplewire.model.errors import BadRequest, InputError
from triplewire.transfer.formats import STANDARD, Format, shape_of

if TYPE_CHECKING:
    from triplewire.transfer.faults import Fault
    from triplewire.transfer.imports import Import, Progress


REJECTED = 3
"""The exit code where some of the file was rejected, and the rest is in."""


class OnError(StrEnum):
    """What to do about what is broken in a file."""

    STOP = "stop"
    SKIP = "skip"


EXAMPLES = """
[bold]Examples[/bold]

What was exported, into another broker:

    triplewire import everything.nq.gz --url http://localhost:8081

What another program wrote, into one stream; lines that are broken are kept for later:

    triplewire import readings.nq --stream home --on-error skip --rejects broken.nq

After Ctrl-C, a crash, or when the broker was away, go on; nothing is published twice:

    triplewire import everything.nq.gz --resume
"""


def add_to(app: typer.Typer) -> None:
    app.command("import", epilog=EXAMPLES)(bring_in)


def bring_in(
    file: Annotated[str, typer.Argument(help="Ends in .nq, .trig (also with .gz) or .parquet; - is standard input.")],
    format: Annotated[
        Optional[Format],  # noqa: UP045 - typer reads the annotation
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
    from triplewire.storage.registry.streams import check_stream_name
    from triplewire.transfer.imports import Import

    if rejects is not None and on_error is OnError.STOP:
        raise BadRequest("--rejects is for --on-error skip: otherwise nothing is published, and all faults are told")
    shape = shape_of(file, format)
    with _file(file) as path:
        wanted = Import(path, shape, None if stream is None else check_stream_name(stream))
        if on_error is OnError.STOP:
            _check(wanted, file)
        keeping = file != STANDARD
        with _telling(file, on_error, rejects, resume=resume) as tell:
            faults = _run(wanted, file, url, tell, keeping=keeping, resume=resume, restart=restart)
    if faults:
        typer.secho(f"triplewire: {faults} faults in {file}; everything else is in", fg="red", err=True)
        raise typer.Exit(REJECTED)


def _run(
    wanted: Import, name: str, url: str, tell: Callable[[Fault], None], *, keeping: bool, resume: bool, restart: bool
) -> int:
    from triplewire.client import Client
    from triplewire.transfer.imports import begun, import_file, reader_of, state_of

    kept = state_of(wanted.path)
    if restart:
        kept.forget()
    progress = begun(wanted, kept, resume=resume)
    size = reader_of(wanted).size() or 0
    with Client(url) as broker, moving("importing", name) as show:
        steps = import_file(broker, wanted, progress, kept=kept if keeping else None, tell=tell, wait=time.sleep)
        for progress in steps:
            show(_moving(progress, size))
    return progress.faults


def _moving(progress: Progress, size: int) -> Moving:
    return Moving(min(progress.mark.spot.offset, size), size, progress.events, progress.quads)


@contextmanager
def _file(name: str) -> Iterator[Path]:
    """The file, or what standard input says: that is looked through before any of it is published, so it is kept."""
    if name != STANDARD:
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
    from triplewire.transfer.imports import faults_of

    count = 0
    for count, fault in enumerate(faults_of(wanted), 1):
        if count <= limits.FAULTS_SHOWN:
            typer.echo(fault.told(name), err=True)
    if count:
        raise InputError(f"{count} faults in {name}; nothing was published. --on-error skip publishes the others")


@contextmanager
def _telling(name: str, on_error: OnError, rejects: Path | None, *, resume: bool) -> Iterator[Callable[[Fault], None]]:
    with ExitStack() as closing:
        out = None if rejects is None else closing.enter_context(rejects.open("ab" if resume else "wb"))
        told = 0

        def tell(fault: Fault) -> None:
            nonlocal told
            if on_error is OnError.STOP:
                raise InputError(f"{fault.told(name)}\nthe file has changed since it was looked through")
            told += 1
            if told <= limits.FAULTS_SHOWN:
                typer.echo(fault.told(name), err=True)
            if out is not None and fault.text:
                out.write(fault.text.rstrip(b"\r\n") + b"\n")
                out.flush()

        yield tell
