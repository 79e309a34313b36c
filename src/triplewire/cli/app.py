"""The command line `triplewire`: all commands, the shared options, and how errors are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

import triplewire
from triplewire.cli import access, erase, lake, query, resources, serve, streams, top, transfer
from triplewire.config.settings import CACERT, RENAMED_COMMANDS, RENAMED_OPTIONS, TOKEN, TOKEN_FILE
from triplewire.model.errors import BadRequest, InputError, TriplewireError

app = typer.Typer(
    name="triplewire",
    help="A semantic event broker: publish RDF events over HTTP, subscribe with SPARQL, and query the whole history.",
    epilog="""[bold]Start here[/bold]

A broker with a simulated city, which shows publishing, subscriptions and queries at work:

    triplewire up --demo

A broker of your own, an event, and the event again as the answer to a query:

    triplewire up
    echo '<urn:roof> <urn:celsius> 31 .' | triplewire publish home --type text/turtle
    triplewire query 'SELECT * { ?sensor <urn:celsius> ?value }'

`triplewire COMMAND --help` explains each command, most of them with examples.""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"triplewire {version('triplewire')}")
        raise typer.Exit


@app.callback()
def shared(
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="File with the access token. TRIPLEWIRE_TOKEN may hold the token itself.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    cacert: Annotated[
        Path | None,
        typer.Option("--cacert", help="PEM file with the CA certificates to trust.", exists=True, dir_okay=False),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    # There is no option for the token itself, because every user of a machine sees the arguments of its processes.
    # File names go into the environment, where clients find them, also those of child processes.
    files = {TOKEN_FILE: token_file, CACERT: cacert}
    os.environ.update({name: str(path.absolute()) for name, path in files.items() if path is not None})
    if token_file is not None:
        os.environ.pop(TOKEN, None)


_PANEL = "Run a broker"
for _command in (serve.up, serve.edge, serve.pipeline, serve.precompile, serve.restart, serve.status):
    app.command(rich_help_panel=_PANEL)(_command)
app.command(epilog=top.EXAMPLES, rich_help_panel=_PANEL)(top.top)
app.command(help=serve.RELAY_HELP, rich_help_panel=_PANEL)(serve.relay)

_PANEL = "Publish and receive events"
app.command(epilog=streams.PUBLISH_EXAMPLES, rich_help_panel=_PANEL)(streams.publish)
app.command(epilog=streams.CONSUME_EXAMPLES, rich_help_panel=_PANEL)(streams.consume)
app.command(epilog=streams.SUBSCRIBE_EXAMPLES, rich_help_panel=_PANEL)(streams.subscribe)

_PANEL = "Query and transfer history"
app.command(epilog=query.EXAMPLES, rich_help_panel=_PANEL)(query.query)
app.add_typer(query.queries, name="queries", rich_help_panel=_PANEL)
app.command(epilog=transfer.EXPORT_EXAMPLES, rich_help_panel=_PANEL)(transfer.export)
app.command("import", epilog=transfer.IMPORT_EXAMPLES, rich_help_panel=_PANEL)(transfer.import_command)

_PANEL = "Ontologies, templates, shapes and webhooks"
app.add_typer(resources.ontologies, name="ontology", rich_help_panel=_PANEL)
app.add_typer(resources.templates, name="template", rich_help_panel=_PANEL)
app.add_typer(resources.shapes_commands, name="shapes", rich_help_panel=_PANEL)
app.add_typer(resources.webhooks, name="webhooks", rich_help_panel=_PANEL)

_PANEL = "Tokens, policy, audit and erasure"
app.add_typer(access.tokens, name="token", rich_help_panel=_PANEL)
app.add_typer(access.policies, name="policy", rich_help_panel=_PANEL)
app.command(rich_help_panel=_PANEL)(access.audit)
app.add_typer(erase.erasures, name="erase", rich_help_panel=_PANEL)

_PANEL = "Maintain, simulate and measure"
app.add_typer(lake.lakes, name="lake", rich_help_panel=_PANEL)
app.command(epilog=lake.ZONES_EXAMPLES, rich_help_panel=_PANEL)(lake.zones)
app.command(rich_help_panel=_PANEL)(streams.simulate)


_BENCH_MISSING = (
    "triplewire: benchmarks come with a clone of the repository, not with the installed package.\n"
    "Clone it, run `make setup` there, and then `.venv/bin/triplewire bench` in the clone."
)
_ALL_ARGUMENTS = {
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
    "ignore_unknown_options": True,
}
"""Every argument is for the benchmarks, `--help` too."""


@app.command(context_settings=_ALL_ARGUMENTS, rich_help_panel=_PANEL)
def bench(context: typer.Context) -> None:
    """Measure Triplewire on this machine: real processes, real sockets."""
    root = Path(triplewire.__file__).resolve().parents[2]
    if not (root / "bench" / "commands.py").is_file():
        typer.secho(_BENCH_MISSING, fg="red", err=True)
        raise typer.Exit(1)
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    # By name, and only when it is used: the package works without its benchmarks.
    import_module("bench.commands").benches(context.args, prog_name=context.command_path)


def check_option_names(arguments: Sequence[str], renamed: Mapping[str, str] = RENAMED_OPTIONS) -> None:
    """Raise BadRequest, with the new name, for a command or an option by its old name."""
    for command in (" ".join(arguments[:words]) for words in (1, 2)):
        if command in RENAMED_COMMANDS:
            raise BadRequest(f"the command {command} is named {RENAMED_COMMANDS[command]} now")
    for option in (each.partition("=")[0] for each in arguments):
        if option in renamed:
            raise BadRequest(f"the option {option} is named {renamed[option]} now")


def main() -> None:
    """Run the command line. Errors that the user can mend are printed in one line, with an excerpt of the input;
    any other exception is a bug, and ends with a traceback."""
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
