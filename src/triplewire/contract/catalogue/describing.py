"""Describing: what is served, for machines and for people."""

from __future__ import annotations

from triplewire.contract.operations import Content, Operation

JSON = "application/json"
_SAME = Content(description="It is still the one that the client has", headers=("ETag",))

OPENAPI = Operation(
    "openapi",
    "Read this description of every route",
    answers={200: Content({JSON: None}, "OpenAPI 3.1", headers=("ETag",)), 304: _SAME},
)
ASYNCAPI = Operation(
    "asyncapi",
    "Read the description of every channel",
    answers={200: Content({JSON: None}, "AsyncAPI 3.0", headers=("ETag",)), 304: _SAME},
)
DOCS = Operation(
    "docs",
    "Read the description of every route in a browser",
    answers={200: Content({"text/html": None}, "A page", headers=("ETag",)), 304: _SAME},
)
