"""`triplewire`: one command for each thing that a person does with a broker."""

from __future__ import annotations

import sys

import typer

from triplewire.cli import (
    bench,
    erase,
    export,
    hooks,
    imports,
    lake,
    listen,
    ontology,
    policy,
    publish,
    query,
    relay,
    serve,
    simulate,
    template,
    top,
    zones,
)
from triplewire.errors import InputError, TriplewireError

app = typer.Typer(
    name="triplewire",
    help="A semantic event broker: publish RDF over HTTP, subscribe in SPARQL, query everything ever published.",
    epilog="Start with `triplewire up --demo`; it shows the whole path at work and says how to go on.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for module in (
    serve,
    publish,
    listen,
    query,
    export,
    imports,
    lake,
    erase,
    ontology,
    policy,
    template,
    hooks,
    top,
    zones,
    relay,
    simulate,
    bench,
):
    module.add_to(app)


def main() -> None:
    """Run the command line. What the user can mend is told in one line, and under it the place in the input; anything
    else is a fault of ours."""
    try:
        app()
    except TriplewireError as error:
        typer.secho(f"triplewire: {error}", fg="red", err=True)
        if isinstance(error, InputError) and error.excerpt:
            typer.echo(error.excerpt, err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
