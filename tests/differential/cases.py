"""Cases: data, a query and the oracle's answer, as files that are run on every engine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from tests.conformance.graphs import Term
from tests.conformance.results import Answer, Rows, Triples
from tests.differential.data import Data
from tests.differential.verdicts import Leeway

FOLDER = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """`expected` is what the oracle answers without the order and the slice of the query."""

    events: tuple[tuple[str, ...], ...]
    query: str
    expected: Any
    leeway: Leeway = field(default_factory=Leeway)
    note: str = ""

    @property
    def data(self) -> Data:
        return Data(self.events)

    @property
    def answer(self) -> Answer:
        return read(self.expected)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Case:
        leeway = dict(document.get("leeway", {}))
        order = tuple((name, descending) for name, descending in leeway.pop("order", ()))
        events = tuple(map(tuple, document["events"]))
        made = Leeway(order=order, **leeway)
        return cls(events, document["query"], document["expected"], made, document.get("note", ""))


def written(found: Answer) -> Any:  # noqa: ANN401
    """An answer as JSON: a boolean, lines of N-Triples for a graph, rows of N-Triples terms."""
    if isinstance(found, bool):
        return found
    if isinstance(found, Triples):
        return sorted(f"{each} ." for each in found.triples)
    rows = [
        {name: str(term) for name, term in zip(found.names, row, strict=True) if term is not None} for row in found.rows
    ]
    return {"names": list(found.names), "rows": rows}


def read(document: Any) -> Answer:  # noqa: ANN401
    """What `written` made."""
    if isinstance(document, list):
        return Triples(frozenset(quad.triple for quad in ox.parse("\n".join(document), format=ox.RdfFormat.N_TRIPLES)))
    if isinstance(document, bool):
        return document
    names = tuple(document["names"])
    return Rows(names, tuple(tuple(term(row.get(name)) for name in names) for row in document["rows"]))


def term(text: str | None) -> Term | None:
    """The term that a text of N-Triples is."""
    if text is None:
        return None
    quads: list[ox.Quad] = list(ox.parse(f"<urn:s> <urn:p> {text} .", format=ox.RdfFormat.N_TRIPLES))
    return quads[0].object


def load() -> dict[str, Case]:
    """All cases by name."""
    return {path.stem: Case.from_json(json.loads(path.read_text())) for path in sorted(FOLDER.glob("*.json"))}
