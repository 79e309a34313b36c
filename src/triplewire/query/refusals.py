"""Refusals: our own errors on their way from one process to another."""

from __future__ import annotations

from typing import Any

from triplewire import errors
from triplewire.errors import Place, TriplewireError

_KNOWN: dict[str, type[TriplewireError]] = {
    each.__name__: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, TriplewireError)
}


def to_json(error: TriplewireError) -> dict[str, Any]:
    """The class of an error, its words, and what it knows besides."""
    facts = dict(vars(error))
    place = facts.pop("place", None)
    found: dict[str, Any] = {"kind": type(error).__name__, "message": str(error), "facts": facts}
    return {**found, "place": [place.line, place.column]} if place else found


def from_json(document: dict[str, Any]) -> TriplewireError:
    """The error again. Its words are those that it had, not made anew from what it knows."""
    kind = _KNOWN[document["kind"]]
    error = kind.__new__(kind)
    error.args = (document["message"],)
    place = document.get("place")
    vars(error).update(document["facts"])
    if issubclass(kind, errors.InputError):
        vars(error)["place"] = Place(*place) if place else None
    return error
