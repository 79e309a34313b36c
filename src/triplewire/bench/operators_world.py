"""The world of `bench operators`: an ontology of conferences, and for each operator a constraint with a value that it
accepts and one that it does not.

Classes and worked examples are those that the thesis names (`operators_thesis`), in its tables 7, 8 and 14.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triplewire.model.terms import RDF_TYPE, XSD

BASE = "http://conference.example/"
VALUE = f"<{BASE}value>"
NUMBER = f"<{BASE}number>"

_RDFS, _OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"

_BELOW: Mapping[str, str] = {
    "Event": "Administrative_event Social_event Conference Workshop Tutorial Lesson",
    "Administrative_event": "Camera_Ready_event Reviewing_event Reviewing_results_event Submission_event "
    "Registration_of_participants_event",
    "Social_event": "Banquet Reception Trip",
    "Contribution": "Paper Short_paper Poster",
    "Person": "Author Student Member Assistant Administrator",
    "Organization": "University Chair_PC",
    "Place": "City Country Continent",
    "Continent": "Africa Asia Europe North_America South_America",
}
_INDIVIDUALS: Mapping[str, str] = {
    "City": "Dublin Carlow",
    "Author": "Jones_Dominic Lewis_Dave",
    "Topic": "Autonomic_Actions Formal_Methods",
    "Paper": "Paper_17",
    "Short_paper": "Short_paper_19",
    "University": "Trinity_College",
}


def name(local: str) -> str:
    return f"<{BASE}{local}>"


def ontology() -> str:
    """As the registry holds it: a triple a line."""
    lines = [f"{name(upper)}\t{RDF_TYPE}\t<{_OWL}Class>" for upper in (*_BELOW, *_INDIVIDUALS)]
    for upper, lower in _BELOW.items():
        lines += [f"{name(each)}\t<{_RDFS}subClassOf>\t{name(upper)}" for each in lower.split()]
    for kind, members in _INDIVIDUALS.items():
        lines += [f"{name(each)}\t{RDF_TYPE}\t{name(kind)}" for each in members.split()]
    lines.append(f"{name('Lesson')}\t<{_OWL}equivalentClass>\t{name('Tutorial')}")
    lines.append(f"{name('Jones_Dominic')}\t{name('hasCity')}\t{name('Dublin')}")
    return "\n".join(dict.fromkeys(lines))


@dataclass(frozen=True)
class Example:
    """An operator as a filter writes it, what it is held against, and values of events."""

    operator: str
    operand: str | Sequence[str]
    accepted: Sequence[str]
    refused: Sequence[str]
    strict: bool = False

    @property
    def symbol(self) -> str:
        """Without the relation of a bag's elements."""
        return self.operator.partition("/")[0]

    @property
    def name(self) -> str:
        return f"{self.operator} strict" if self.strict else self.operator

    def document(self, number: int) -> dict[str, Any]:
        """A filter that is like no other, because it asks for a number, too: nothing can be said of two at once."""
        value: object = [{"@id": BASE + each} for each in self.operand]
        if isinstance(self.operand, str):
            value = {"@id": BASE + self.operand}
        asked = {"attribute": f"{BASE}value", "op": self.operator, "value": value, "strict": self.strict}
        return {"filter": [asked, {"attribute": f"{BASE}number", "op": "=", "value": number}]}

    def event(self, number: int, *, refused: bool = False) -> str:
        """The text of an event with that number."""
        this = f"<{BASE}publication/{number}>"
        values = self.refused if refused else self.accepted
        lines = [f"{this}\t{VALUE}\t{name(each)}" for each in values]
        return "\n".join([*lines, f'{this}\t{NUMBER}\t"{number}"^^<{XSD}integer>'])


_THREE = ("Chair_PC", "Administrator", "Administrative_event")

EXAMPLES: Sequence[Example] = (
    Example("@>", "Administrative_event", ("Camera_Ready_event",), ("Banquet",)),
    Example("@>", "Administrative_event", ("Camera_Ready_event",), ("Administrative_event",), strict=True),
    Example("@<", "Paper", ("Contribution",), ("Event",)),
    Example("@<", "Paper", ("Contribution",), ("Paper",), strict=True),
    Example("@~", "Lesson", ("Tutorial",), ("Workshop",)),
    Example("@!~", "Lesson", ("Organization",), ("Tutorial",)),
    Example("@=", "City", ("Dublin",), ("Paper_17",)),
    Example("@!=", "Organization", ("Autonomic_Actions",), ("Trinity_College",)),
    Example("@*", ("hasCity", "Dublin"), ("Jones_Dominic",), ("Lewis_Dave",)),
    Example("#=", _THREE, tuple(reversed(_THREE)), _THREE[:2]),
    Example("#=/@<", _THREE, ("Organization", "Person", "Event"), ("Organization", "Person")),
    Example("#>", _THREE[:2], _THREE, _THREE[1:]),
    Example("#>/@<", ("Chair_PC", "Administrative_event"), ("Organization", "Person", "Event"), ("Person", "Event")),
    Example("#<", _THREE, _THREE[1:], ("Chair_PC", "Paper")),
    Example("#</@<", _THREE, ("Organization", "Person"), ("Organization", "Paper")),
)
