"""`ontology`, `template`, `shapes`, `webhooks`: put, show and remove registered resources; webhooks and their dead
letters.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from triplewire.cli.common import (
    DEFAULT_URL,
    Json,
    MediaType,
    Url,
    open_client,
    print_json,
    print_result,
    print_rows,
    read_text,
    split_pairs,
    write_bytes,
)

RdfFile = Annotated[Path, typer.Argument(help="An RDF file.", exists=True, dir_okay=False)]
ShapesFile = Annotated[Path, typer.Argument(help="An RDF file with SHACL shapes.", exists=True, dir_okay=False)]
OutputType = Annotated[str, typer.Option("--type", help="Media type to print.")]
OntologyName = Annotated[str, typer.Argument(help="Name of the ontology.")]
TemplateName = Annotated[str, typer.Argument(help="Name of the template.")]
Stream = Annotated[str, typer.Argument(help="Name of the stream.")]
Hook = Annotated[str, typer.Argument(help="Id of the subscription, or an id that `webhooks list` shows.")]
Positions = Annotated[
    list[str] | None,
    typer.Option("--position", help="Only the message at this position, as `webhooks dead` shows it; repeatable."),
]

VIOLATED = 3
"""The exit code if an event does not conform to the shapes."""

ontologies = typer.Typer(
    help="Ontologies: classes and properties for queries and subscriptions with RDFS entailment.", no_args_is_help=True
)
templates = typer.Typer(help="Templates: SPARQL with `$parameters`, for subscriptions.", no_args_is_help=True)
shapes_commands = typer.Typer(help="SHACL shapes that the events of a stream must conform to.", no_args_is_help=True)
webhooks = typer.Typer(
    help="Webhooks and WebSub subscribers: their progress and their dead letters.\n\n"
    "A webhook is created with a subscription: "
    '`curl $URL/subscriptions --json \'{"stream": "home", "webhook": {"url": "https://…"}}\'`.',
    no_args_is_help=True,
)


def _media_type(file: Path, given: str | None) -> str:
    from triplewire.rdf import find_file_syntax

    return given or find_file_syntax(file.name).media_type


@ontologies.command("put")
def put_ontology(
    name: OntologyName, file: RdfFile, syntax: MediaType = None, url: Url = DEFAULT_URL, json: Json = False
) -> None:
    """Load an ontology. It replaces the one of the same name."""
    with open_client(url) as client:
        loaded = client.load_ontology(name, file.read_bytes(), _media_type(file, syntax))
    counts = f"{loaded['triples']:,} triples, {loaded['classes']:,} classes, {loaded['properties']:,} properties"
    print_result(loaded, f"{name}: {counts}, version {loaded['version']}", json=json)


@ontologies.command("list")
def list_ontologies(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the ontologies."""
    with open_client(url) as client:
        found = client.ontologies()
    names = ("name", "version", "triples", "classes", "properties")
    rows = ([str(each[name]) for name in names] for each in found)
    print_rows(found, names, rows, "no ontology is loaded; `triplewire ontology put` loads one", json=json)


@ontologies.command("get")
def get_ontology(name: OntologyName, syntax: OutputType = "text/turtle", url: Url = DEFAULT_URL) -> None:
    """Print an ontology."""
    with open_client(url) as client:
        write_bytes(client.ontology(name, syntax))


@ontologies.command("delete")
def delete_ontology(name: OntologyName, url: Url = DEFAULT_URL) -> None:
    """Remove an ontology. From then on queries are answered without it."""
    with open_client(url) as client:
        client.remove_ontology(name)


@templates.command("put")
def put_template(
    name: TemplateName,
    sparql: Annotated[str, typer.Argument(help="SPARQL, a file with it, or `-` for standard input.")],
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="PARAMETER=TYPE", help="Type of a parameter; repeatable.")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a template, or replace it. Subscriptions made from the old one do not change.

    Types are `iri`, `literal`, `string`, `integer`, `decimal`, `double`, `boolean`, `dateTime`, `date`, and `term`,
    which accepts anything and is the default.
    """
    parameters = {parameter: {"type": given} for parameter, given in split_pairs(types or [], "--type")}
    with open_client(url) as client:
        template = client.put_template(name, read_text(sparql), parameters or None)
    print_result(template, f"{name}: {_parameters(template)}, version {template['version']}", json=json)


@templates.command("list")
def list_templates(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the templates and their parameters."""
    with open_client(url) as client:
        found = client.templates()
    rows = ((each["name"], str(each["version"]), _parameters(each)) for each in found)
    empty = "there is no template; `triplewire template put` creates one"
    print_rows(found, ("name", "version", "parameters"), rows, empty, json=json)


@templates.command("get")
def get_template(name: TemplateName, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Print the text of a template, or with `--json` all of it."""
    with open_client(url) as client:
        template = client.template(name)
    if json:
        print_json(template)
    else:
        sys.stdout.write(template["sparql"].rstrip("\n") + "\n")


@templates.command("delete")
def delete_template(name: TemplateName, url: Url = DEFAULT_URL) -> None:
    """Remove a template. Subscriptions made from it stay."""
    with open_client(url) as client:
        client.remove_template(name)


def _parameters(template: dict[str, Any]) -> str:
    return ", ".join(f"${name} {each['type']}" for name, each in template["parameters"].items()) or "no parameters"


@shapes_commands.command("put")
def put_shapes(
    stream: Stream,
    file: ShapesFile,
    mode: Annotated[
        str, typer.Option("--mode", help="`refuse` events that do not conform, or `mark` them.")
    ] = "refuse",
    syntax: MediaType = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Set the shapes of a stream. Events that are published from then on are validated against them."""
    with open_client(url) as client:
        loaded = client.put_shapes(stream, file.read_bytes(), _media_type(file, syntax), mode)
    text = f"{stream}: {loaded['triples']:,} triples, mode {loaded['mode']}, version {loaded['version']}"
    print_result(loaded, text, json=json)


@shapes_commands.command("show")
def show_shapes(stream: Stream, syntax: OutputType = "text/turtle", url: Url = DEFAULT_URL) -> None:
    """Print the shapes of a stream."""
    with open_client(url) as client:
        write_bytes(client.shapes(stream, syntax))


@shapes_commands.command("remove")
def remove_shapes(stream: Stream, url: Url = DEFAULT_URL) -> None:
    """Remove the shapes of a stream. Events that are published from then on are not validated."""
    with open_client(url) as client:
        client.remove_shapes(stream)


@shapes_commands.command("check")
def check_shapes(
    shapes: ShapesFile,
    files: Annotated[list[Path], typer.Argument(help="RDF files with events.", exists=True, dir_okay=False)],
    json: Json = False,
) -> None:
    """Validate files against shapes, without a broker. Exits with 3 if an event does not conform."""
    from triplewire.rdf import decode, find_file_syntax
    from triplewire.rdf.shacl import parse_shapes
    from triplewire.rdf.shacl_worker import ShapeValidator

    validator, violations = ShapeValidator(), 0
    validator.load("shapes", parse_shapes(shapes.read_bytes(), find_file_syntax(shapes.name)))
    for file in files:
        for event in decode(file.read_bytes(), find_file_syntax(file.name)):
            report = validator.validate("shapes", event.text)
            violations += report is not None
            results = [] if report is None else report["results"]
            if json:
                print_json({"file": str(file), "event": event.id, "conforms": report is None, "results": results})
            for each in [] if json else results:
                typer.secho(f"{file}: {each['focus']}: {each.get('message', each['constraint'])}", fg="red", err=True)
    if violations:
        raise typer.Exit(VIOLATED)


@webhooks.command("list")
def list_webhooks(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List webhooks: position, state, last error, and how many messages are dead letters."""
    with open_client(url) as client:
        found = client.webhooks()
    columns = ("id", "to", "state", "position", "parked", "trouble")
    rows = (
        (each["id"], each["url"], each["state"], each["position"], f"{each['parked']:,}", _trouble(each))
        for each in found
    )
    empty = "there is no webhook; a subscription with `webhook` creates one"
    print_rows(found, columns, rows, empty, json=json)


def _trouble(webhook: dict[str, Any]) -> str:
    return f"{webhook['reason']}, {webhook['failures']} times" if webhook.get("reason") else ""


@webhooks.command("dead")
def list_dead_letters(hook: Hook, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List dead letters: messages that the target refused until the last attempt."""
    with open_client(url) as client:
        found = client.dead_letters(hook)
    rows = ((each["position"], each["parked"], str(each["attempts"]), each["reason"]) for each in found)
    print_rows(found, ("position", "parked", "attempts", "why"), rows, "there are no dead letters", json=json)


@webhooks.command("replay")
def replay_dead_letters(hook: Hook, position: Positions = None, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Deliver dead letters once more; those that are refused again stay. A retry that is due later runs at once."""
    with open_client(url) as client:
        answer = client.replay(hook, position)
    text = f"{answer['replaying']} will be delivered again; `triplewire webhooks dead {hook}` lists those that remain"
    print_result(answer, text, json=json)


@webhooks.command("drop")
def drop_dead_letters(hook: Hook, position: Positions = None, url: Url = DEFAULT_URL) -> None:
    """Delete dead letters. They will not be delivered."""
    with open_client(url) as client:
        client.drop_dead_letters(hook, position)
