"""Receipts: what publishers are told of a body, once its events are durable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web

from triplewire.config import limits
from triplewire.edge.intake.parcels import Outcome
from triplewire.edge.problems import MEDIA_TYPE, response_of
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, ShapeViolation
from triplewire.rdf import SYNTAXES
from triplewire.rdf.serializer import find_frame, write_fragment
from triplewire.rdf.syntaxes import choose_offer


def receipt(told: Mapping[str, Any], positions: Sequence[int], repeated: int = 0) -> dict[str, Any]:
    """Of events that are there now: how many, where the first and the last of them are, and after which position all
    of them were."""
    first, last, most = format_position(positions[0]), format_position(positions[-1]), format_position(max(positions))
    again = {"repeated": repeated} if repeated else {}
    return {**told, "events": len(positions), "first": first, "last": last, "position": most, **again}


def created(found: Mapping[str, Any]) -> web.Response:
    return web.Response(status=201, body=orjson.dumps(found), content_type="application/json")


def answer(told: Mapping[str, Any], results: Sequence[Outcome]) -> web.Response:
    """201 if anything of a body was taken, with what was refused; else the first problem, with all of them."""
    refused = [each.told() for each in results if not each.positions]
    shown: dict[str, Any] = {"refused": refused[: limits.REFUSALS_TOLD], "refusals": len(refused)} if refused else {}
    positions = [position for each in results for position in each.positions]
    if positions:
        return created(receipt(told, positions, sum(each.repeated for each in results)) | shown)
    if not refused:
        raise BadRequest("the body holds no items")
    return response_of({**refused[0]["problem"], **shown})


def reported(accept: str, results: Sequence[Outcome]) -> web.Response | None:
    """For who asks for RDF, where nothing of a body was taken because of the shapes of its stream: the report."""
    error = results[0].answer if results and not any(each.positions for each in results) else None
    if not isinstance(error, ShapeViolation):
        return None
    liked = choose_offer(accept, [(MEDIA_TYPE, "application/json"), *(each.media_types for each in SYNTAXES)])
    if not liked:
        return None
    syntax = SYNTAXES[liked - 1]
    around = find_frame(syntax)
    body = around.head + write_fragment(error.report.encode(), syntax) + around.tail
    return web.Response(status=422, body=body, content_type=syntax.media_type)
