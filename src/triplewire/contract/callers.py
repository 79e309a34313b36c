"""Callers: who asks, kept with a request on its way to a handler."""

from __future__ import annotations

from aiohttp import web

from triplewire.access import EVERYONE, Principal

_CALLER = web.RequestKey("caller", Principal)


def call_by(request: web.Request, principal: Principal) -> None:
    """To be said by the door, once it knows."""
    request[_CALLER] = principal


def caller(request: web.Request) -> Principal:
    """Who asks; everyone where no door has looked."""
    found: Principal = request.get(_CALLER, EVERYONE)
    return found
