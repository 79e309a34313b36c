"""`ontology`, `template`, `shapes`, `hooks`: put, show and remove registered resources; webhooks and their dead
letters.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from rich.console import Console
from rich.table import Table

from triplewire.cli.common import DEFAULT_URL, Json, Url, make_table, print_json, read_text

OntologyName = Annotated[str, typer.Argument(help="Name of the ontology.")]

ontologies = typer.Typer(help="Classes and properties, for queries with `--entailment rdfs`.", no_args_is_help=True)


def add_ontology_commands(app: typer.Typer) -> None:
    app.add_typer(ontologies, name="ontology")


@ontologies.command("put")
def put_ontology(
    name: OntologyName,
    file: Annotated[Path, typer.Argument(help="An RDF file.", exists=True, dir_okay=False)],
    syntax: Annotated[
        Optional[str],  # noqa: UP045 - typer reads the annotation
        typer.Option("--type", help="Media type; by default from the file's ending."),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Load an ontology, in place of what had the name."""
    from triplewire.client import Client
    from triplewire.rdf import find_file_syntax

    given = syntax or find_file_syntax(file.name).media_type
    with Client(url) as client:
        loaded = client.load_ontology(name, file.read_bytes(), given)
    if json:
        print_json(loaded)
    else:
        says = f"{loaded['triples']:,} triples, {loaded['classes']:,} classes, {loaded['properties']:,} properties"
        Console(highlight=False).print(f"{name}: {says}, version {loaded['version']}")


@ontologies.command("list")
def list_ontologies(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which ontologies are loaded."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.ontologies()
    if json:
        print_json(found)
    else:
        Console().print(_ontology_table(found) if found else "no ontology is loaded")


@ontologies.command("get")
def get_ontology(
    name: OntologyName,
    syntax: Annotated[str, typer.Option("--type", help="Media type to print.")] = "text/turtle",
    url: Url = DEFAULT_URL,
) -> None:
    """Print an ontology."""
    from triplewire.client import Client

    with Client(url) as client:
        sys.stdout.buffer.write(client.ontology(name, syntax))
    sys.stdout.buffer.flush()


@ontologies.command("delete")
def delete_ontology(name: OntologyName, url: Url = DEFAULT_URL) -> None:
    """Remove an ontology. Queries are answered without it from then on."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_ontology(name)


def _ontology_table(found: list[dict[str, Any]]) -> Table:
    names = ("name", "version", "triples", "classes", "properties")
    table = make_table(*names)
    for each in found:
        table.add_row(*(str(each[name]) for name in names))
    return table


# `template`: put, see and remove query texts with parameters.

TemplateName = Annotated[str, typer.Argument(help="Name of the template.")]

templates = typer.Typer(help="Query texts with `$parameters`, of which subscriptions are made.", no_args_is_help=True)


def add_template_commands(app: typer.Typer) -> None:
    app.add_typer(templates, name="template")


@templates.command("put")
def put_template(
    name: TemplateName,
    sparql: Annotated[str, typer.Argument(help="The text, a file that holds it, or `-` for standard input.")],
    types: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads the annotation
        typer.Option("--type", metavar="PARAMETER=TYPE", help="What a parameter must be; may be repeated."),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Put a template, in place of what had the name. Subscriptions that were made of that stay as they are.

    Types are `iri`, `literal`, `string`, `integer`, `decimal`, `double`, `boolean`, `dateTime`, `date`, and `term`,
    which is anything and the default.
    """
    from triplewire.client import Client

    parameters = {parameter: {"type": given} for parameter, given in parse_pairs(types or [], "--type").items()}
    with Client(url) as client:
        made = client.put_template(name, read_text(sparql), parameters or None)
    if json:
        print_json(made)
    else:
        Console(highlight=False).print(f"{name}: {_parameters(made)}, version {made['version']}")


@templates.command("list")
def list_templates(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell which templates there are."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.templates()
    if json:
        print_json(found)
    else:
        Console().print(_template_table(found) if found else "there is no template")


@templates.command("get")
def get_template(name: TemplateName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print a template: its text, or with `--json` all of it."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.template(name)
    if json:
        print_json(found)
    else:
        sys.stdout.write(found["sparql"].rstrip("\n") + "\n")


@templates.command("delete")
def delete_template(name: TemplateName, url: Url = DEFAULT_URL) -> None:
    """Remove a template. Subscriptions that were made of it stay."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_template(name)


def parse_pairs(given: Sequence[str], option: str) -> dict[str, str]:
    """`name=text`, each of them, by name. Ends with what is right for one that is none."""
    found = dict[str, str]()
    for each in given:
        name, sign, text = each.partition("=")
        if not name or not sign:
            raise typer.BadParameter(f"{each!r} is no NAME=TEXT", param_hint=option)
        found[name] = text
    return found


def _template_table(found: list[dict[str, Any]]) -> Table:
    table = make_table("name", "version", "parameters")
    for each in found:
        table.add_row(each["name"], str(each["version"]), _parameters(each))
    return table


def _parameters(template: dict[str, Any]) -> str:
    told = [f"${name} {each['type']}" for name, each in template["parameters"].items()]
    return ", ".join(told) or "no parameters"


# `shapes`: what the events of a stream are to conform to.

Stream = Annotated[str, typer.Argument(help="Name of the stream.")]
Type = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation
    typer.Option("--type", help="Media type; by default from the file's ending."),
]

VIOLATED = 3
"""The exit code where an event does not conform."""

shapes_commands = typer.Typer(help="SHACL: what the events of a stream are to conform to.", no_args_is_help=True)


def add_shapes_commands(app: typer.Typer) -> None:
    app.add_typer(shapes_commands, name="shapes")


@shapes_commands.command("put")
def put_shapes(
    stream: Stream,
    file: Annotated[Path, typer.Argument(help="Shapes, in RDF.", exists=True, dir_okay=False)],
    mode: Annotated[
        str, typer.Option("--mode", help="`refuse` events that do not conform, or `mark` them.")
    ] = "refuse",
    syntax: Type = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Give a stream shapes, in place of those that it had. What is published from then on is judged by them."""
    from triplewire.client import Client
    from triplewire.rdf import find_file_syntax

    given = syntax or find_file_syntax(file.name).media_type
    with Client(url) as client:
        made = client.put_shapes(stream, file.read_bytes(), given, mode)
    if json:
        print_json(made)
    else:
        says = f"{made['triples']:,} triples, mode {made['mode']}, version {made['version']}"
        Console(highlight=False).print(f"{stream}: {says}")


@shapes_commands.command("show")
def show_shapes(
    stream: Stream,
    syntax: Annotated[str, typer.Option("--type", help="Media type to print.")] = "text/turtle",
    url: Url = DEFAULT_URL,
) -> None:
    """Print the shapes of a stream."""
    from triplewire.client import Client

    with Client(url) as client:
        sys.stdout.buffer.write(client.shapes(stream, syntax))
    sys.stdout.buffer.flush()


@shapes_commands.command("remove")
def remove_shapes(stream: Stream, url: Url = DEFAULT_URL) -> None:
    """Take the shapes from a stream. What is published from then on is not judged."""
    from triplewire.client import Client

    with Client(url) as client:
        client.remove_shapes(stream)


@shapes_commands.command("check")
def check_shapes(
    shapes: Annotated[Path, typer.Argument(help="Shapes, in RDF.", exists=True, dir_okay=False)],
    files: Annotated[list[Path], typer.Argument(help="Events, in RDF.", exists=True, dir_okay=False)],
    json: Json = False,
) -> None:
    """Judge the events of files by shapes, here, without a broker. If any does not conform the exit code is 3."""
    from triplewire.rdf import decode, find_file_syntax
    from triplewire.rdf.shacl import parse_shapes
    from triplewire.rdf.shacl_worker import ShapeValidator

    judge, wrong = ShapeValidator(), 0
    judge.load("shapes", parse_shapes(shapes.read_bytes(), find_file_syntax(shapes.name)))
    for file in files:
        for event in decode(file.read_bytes(), find_file_syntax(file.name)):
            found = judge.validate("shapes", event.text)
            wrong += found is not None
            results = [] if found is None else found["results"]
            if json:
                print_json({"file": str(file), "event": event.id, "conforms": found is None, "results": results})
            for each in [] if json else results:
                typer.secho(f"{file}: {each['focus']}: {each.get('message', each['constraint'])}", fg="red", err=True)
    if wrong:
        raise typer.Exit(VIOLATED)


# `hooks`: see who is told by POST, what was not taken, and have that delivered again.

Id = Annotated[str, typer.Argument(help="Id of the subscription, or of what `hooks list` shows.")]
Positions = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads the annotation
    typer.Option("--position", help="Only what lies at this position, as `hooks dead` shows it; may be repeated."),
]

hooks = typer.Typer(
    help="Webhooks and subscribers by WebSub: who is told by POST, and what was parked because it was not taken.\n\n"
    "A webhook is made with a subscription: "
    '`curl $URL/subscriptions --json \'{"stream": "home", "webhook": {"url": "https://…"}}\'`.',
    no_args_is_help=True,
)


def add_hooks_commands(app: typer.Typer) -> None:
    app.add_typer(hooks, name="hooks")


@hooks.command("list")
def list_hooks(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell who is told by POST: how far each is, what is tried again and why, and how much is parked."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.webhooks()
    if json:
        print_json(found)
    else:
        Console().print(_hooks(found) if found else "nobody is told by POST")


@hooks.command("dead")
def dead(hook: Id, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Tell what was parked: what a target did not take, whatever was tried."""
    from triplewire.client import Client

    with Client(url) as client:
        found = client.dead_letters(hook)
    if json:
        print_json(found)
    else:
        Console().print(_letters(found) if found else "nothing is parked")


@hooks.command("replay")
def replay(hook: Id, position: Positions = None, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Deliver again what was parked, each once; what is not taken stays. What is being tried again is tried at once."""
    from triplewire.client import Client

    with Client(url) as client:
        told = client.replay(hook, position)
    if json:
        print_json(told)
    else:
        Console().print(f"{told['replaying']} will be delivered; `triplewire hooks dead {hook}` tells what is left")


@hooks.command("drop")
def drop(hook: Id, position: Positions = None, url: Url = DEFAULT_URL) -> None:
    """Give up what was parked: it is not delivered any more."""
    from triplewire.client import Client

    with Client(url) as client:
        client.drop_dead_letters(hook, position)


def _hooks(found: list[dict[str, Any]]) -> Table:
    table = make_table("id", "to", "state", "position", "parked", "trouble")
    for each in found:
        trouble = f"{each['reason']}, {each['failures']} times" if each.get("reason") else ""
        table.add_row(each["id"], each["url"], each["state"], each["position"], f"{each['parked']:,}", trouble)
    return table


def _letters(found: list[dict[str, Any]]) -> Table:
    table = make_table("position", "parked", "attempts", "why")
    for each in found:
        table.add_row(each["position"], each["parked"], str(each["attempts"]), each["reason"])
    return table
