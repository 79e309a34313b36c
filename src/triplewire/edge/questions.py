"""Questions: everything that a request to `/sparql` says is checked here, once."""

from __future__ import annotations

from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from triplewire.config import limits
from triplewire.history.requests import HistoryRequest
from triplewire.model.errors import BadRequest, BodyTooLarge, UnknownMediaType, Unsupported
from triplewire.rdf import check_id

QUERY = "application/sparql-query"
FORM = "application/x-www-form-urlencoded"
_UPDATE = "application/sparql-update"

_FIELDS = 2 * limits.DATASET_GRAPHS + 16
"""Fields of a form: the graphs, and whatever else a request may say."""

_DIGITS = 18
"""Of the number of a version: more than a long holds are those of none."""


async def question(request: web.Request) -> HistoryRequest | None:
    """The query of a request; None if it asks nothing. Raises InputError."""
    said = await _parameters(request)
    if "update" in said:
        raise Unsupported("SPARQL Update", hint="events are published to /streams/{stream}; the past does not change")
    text = _single(said, "query")
    if text is None:
        return None
    if not text.strip():
        raise BadRequest("the query is empty; give it as ?query=, as a form field, or as the body")
    if len(_encoded(text, "query")) > limits.QUERY_BYTES:
        raise BodyTooLarge("the query", limits.QUERY_BYTES)
    return HistoryRequest(
        text,
        accept=accepted(request),
        format=_single(said, "format"),
        default_graphs=_graphs(said, "default-graph-uri"),
        named_graphs=_graphs(said, "named-graph-uri"),
        engine=_single(said, "engine") or "auto",
        seconds=_seconds(said),
        entailment=_single(said, "entailment"),
        explain=_single(said, "explain"),
        version=_version(said),
        as_of=_single(said, "as_of"),
    )


def accepted(request: web.Request) -> str | None:
    """The Accept headers, as if they were one."""
    return ",".join(request.headers.getall("Accept", ())) or None


async def _parameters(request: web.Request) -> MultiDict[str]:
    """Those of the address and those of the body. A body that is a query counts as `query`."""
    said = MultiDict(request.query)
    if request.method == "GET":
        return said
    if (request.content_length or 0) > 4 * limits.QUERY_BYTES:
        raise BodyTooLarge("the query", limits.QUERY_BYTES)
    if request.content_type == QUERY:
        said.add("query", _decoded(await request.read()))
    elif request.content_type == FORM:
        said.extend(await _form(request))
    elif request.content_type == _UPDATE:
        said.add("update", "")
    else:
        raise UnknownMediaType(request.headers.get("Content-Type", ""), (QUERY, FORM))
    return said


async def _form(request: web.Request) -> MultiDict[str]:
    text = _decoded(await request.read())
    try:
        return MultiDict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_FIELDS))
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {error}") from None


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the query is not UTF-8 at byte {error.start}") from None


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"the parameter {name} is not UTF-8") from None


def _single(said: MultiDict[str], name: str) -> str | None:
    values = said.getall(name, [])
    if len(values) > 1:
        raise BadRequest(f"the parameter {name} is given {len(values)} times; give it once")
    if values:
        _encoded(values[0], name)
    return values[0] if values else None


def _graphs(said: MultiDict[str], name: str) -> tuple[str, ...] | None:
    values = said.getall(name, [])
    if len(values) > limits.DATASET_GRAPHS:
        raise BadRequest(f"{len(values)} parameters {name} are given; at most {limits.DATASET_GRAPHS} are taken")
    for value in values:
        _encoded(value, name)
    return tuple(map(check_id, values)) or None


def _seconds(said: MultiDict[str]) -> float | None:
    text = _single(said, "timeout")
    try:
        return None if text is None else float(text)
    except ValueError:
        raise BadRequest(f"the parameter timeout must be a number of seconds, not {text!r}") from None


def _version(said: MultiDict[str]) -> int | None:
    text = _single(said, "version")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise BadRequest(f"the parameter version must be the number of a version, not {text!r}")
    return int(text)
