"""Problems: what is wrong is said as RFC 9457 has it, with its place and with what would be right."""

from __future__ import annotations

from tests.conformance.deployments.brokers import Broker
from tests.conformance.deployments.checks import Group

PROBLEMS = Group("problems")


@PROBLEMS.check("RDF that does not parse is refused, with its line and column")
async def _(broker: Broker) -> None:
    body = b"<urn:s> <urn:p> <urn:o> .\n<urn:s> oops ."
    headers = {"Content-Type": "text/turtle"}
    told = await broker.problem(400, "POST", f"/streams/{broker.name()}", data=body, headers=headers)
    assert (told["line"], told["column"] >= 1) == (2, True), told


@PROBLEMS.check("a media type that is not known is refused, with those that are")
async def _(broker: Broker) -> None:
    headers = {"Content-Type": "application/x-none"}
    told = await broker.problem(415, "POST", f"/streams/{broker.name()}", data=b"x", headers=headers)
    assert "text/turtle" in told["known"], told


@PROBLEMS.check("a format that there is not is refused, with those that there are")
async def _(broker: Broker) -> None:
    told = await broker.problem(406, "GET", f"/streams/{broker.name()}", headers={"Accept": "image/png"})
    assert "text/event-stream" in told["known"], told
    await broker.problem(400, "GET", f"/streams/{broker.name()}?format=none")


@PROBLEMS.check("SPARQL that does not parse is refused, with its place")
async def _(broker: Broker) -> None:
    told = await broker.problem(400, "POST", "/subscriptions", json={"sparql": "SELECT * { ?s ?p }"})
    assert {"line", "column"} <= told.keys(), told


@PROBLEMS.check("a field that does not fit is named")
async def _(broker: Broker) -> None:
    told = await broker.problem(422, "POST", "/subscriptions", json={"sparql": "ASK { ?s ?p ?o }", "kind": "loud"})
    assert told["field"] == "kind", told


@PROBLEMS.check("addresses, subscriptions and methods that there are not are told")
async def _(broker: Broker) -> None:
    await broker.problem(404, "GET", f"/{broker.name()}")
    await broker.problem(404, "GET", f"/subscriptions/{broker.name()}")
    await broker.problem(404, "GET", f"/subscriptions/{broker.name()}/notifications")
    told = await broker.problem(405, "PATCH", "/subscriptions")
    assert "POST" in told["known"], told


@PROBLEMS.check("a name, a position and a number that are none are refused")
async def _(broker: Broker) -> None:
    headers = {"Content-Type": "text/turtle"}
    await broker.problem(400, "POST", "/streams/-x", data=b"<urn:s> <urn:p> 1 .", headers=headers)
    await broker.problem(400, "GET", f"/streams/{broker.name()}?after=none")
    await broker.problem(400, "GET", f"/streams/{broker.name()}?mode=poll&wait=never")


@PROBLEMS.check("an update of history is refused: it does not change")
async def _(broker: Broker) -> None:
    told = await broker.problem(422, "POST", "/sparql", data={"update": "DELETE WHERE { ?s ?p ?o }"})
    assert told["construct"] == "SPARQL Update", told
