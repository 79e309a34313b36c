"""The command line `triplewire`: all commands, the shared options, and how errors are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Optional

import typer

from triplewire.cli import access, bench, erase, lake, query, resources, serve, streams, top, transfer
from triplewire.config.settings import CACERT, RENAMED_OPTIONS, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest, InputError, TriplewireError

app = typer.Typer(
    name="triplewire",
    help="A semantic event broker: publish RDF over HTTP, subscribe in SPARQL, query everything ever published.",
    epilog="Start with `triplewire up --demo`; it shows the whole path at work and says how to go on.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"triplewire {version('triplewire')}")
        raise typer.Exit


@app.callback()
def shared(
    token_file: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads the annotation
        typer.Option(
            "--token-file",
            help="File with the token to show to the broker; TRIPLEWIRE_TOKEN may hold the token itself.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    cacert: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--cacert", help="File with the certificates (PEM) to go by.", exists=True, dir_okay=False),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", is_eager=True, callback=_tell_version)
    ] = False,
) -> None:
    # A token itself is no option: everyone on a machine sees how commands were called. The names of the files are left
    # in the environment, where clients look, those of processes that a command starts among them.
    given = {TOKEN_FILE: token_file, CACERT: cacert}
    os.environ.update({name: str(path.absolute()) for name, path in given.items() if path is not None})
    if token_file is not None:
        os.environ.pop(TOKEN, None)


serve.add_serve_commands(app)
streams.add_publish_command(app)
streams.add_consume_commands(app)
query.add_query_command(app)
query.add_queries_commands(app)
transfer.add_export_command(app)
transfer.add_import_command(app)
lake.add_lake_commands(app)
erase.add_to(app)
resources.add_ontology_commands(app)
access.add_policy_commands(app)
resources.add_shapes_commands(app)
resources.add_template_commands(app)
resources.add_hooks_commands(app)
access.add_token_commands(app)
access.add_audit_command(app)
top.add_to(app)
lake.add_zones_command(app)
serve.add_relay_command(app)
streams.add_simulate_command(app)
bench.add_to(app)


def check_option_names(arguments: Sequence[str], renamed: Mapping[str, str] = RENAMED_OPTIONS) -> None:
    """Raise BadRequest, with the new name, for an option by its old name."""
    for option in (each.partition("=")[0] for each in arguments):
        if option in renamed:
            raise BadRequest(f"the option {option} is named {renamed[option]} now")


def main() -> None:
    """Run the command line. What the user can mend is told in one line, and under it the place in the input; anything
    else is a fault of ours."""
    try:
        check_option_names(sys.argv[1:])
        app()
    except TriplewireError as error:
        typer.secho(f"triplewire: {error}", fg="red", err=True)
        if isinstance(error, InputError) and error.excerpt:
            typer.echo(error.excerpt, err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
