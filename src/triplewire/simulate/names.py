"""Names: the IRIs of the city, and how they are said to people."""

from __future__ import annotations

from triplewire.model.terms import XSD

SOSA = "http://www.w3.org/ns/sosa/"
CITY = "http://city.example/"

DOUBLE = f"<{XSD}double>"
DATE_TIME = f"<{XSD}dateTime>"
INTEGER = f"<{XSD}integer>"


def city(path: str) -> str:
    """The term for a thing of the city."""
    return f"<{CITY}{path}>"


def sosa(name: str) -> str:
    """The term for a word of the SOSA vocabulary."""
    return f"<{SOSA}{name}>"


def spoken(address: str) -> str:
    """What people call it: `http://city.example/road/harbour-3` is `Harbour 3`."""
    return address.rstrip("/").rpartition("/")[2].replace("-", " ").capitalize()
