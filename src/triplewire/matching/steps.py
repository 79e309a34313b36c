"""Steps: what became of an event at each part of a query, as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """One part of a query, and how many solutions there are on the event once it was taken."""

    kind: str
    """`pattern`, `filter`, or the name of an operator."""
    says: str
    solutions: int
    alone: int | None = None
    """Of a pattern: how many triples of the event match it, whatever the others say."""
    before: int | None = None
    """Of a filter: how many solutions came to it."""
    found: tuple[str, ...] = ()
    """Of a pattern: some quads that are in the solutions so far."""
    inferred: tuple[str, ...] = ()
    """Of a pattern: some quads, or facts of the ontology, from which its triple follows."""
    removed: tuple[str, ...] = ()
    """Of a filter: what it saw in some solutions that it did not let through."""
    inside: tuple[Step, ...] = ()
    needed: bool = True
    """Whether the part around it has no solution without one of this."""

    def failed(self) -> Step | None:
        """The first part after which nothing is left; None where something is."""
        if self.solutions:
            return None
        reasons = (each.failed() for each in self.inside if each.needed)
        return next((each for each in reasons if each is not None), self)

    def value(self) -> dict[str, Any]:
        """As JSON. What does not apply is left out."""
        numbers = {"solutions": self.solutions, "alone": self.alone, "before": self.before}
        lists = {"found": self.found, "inferred": self.inferred, "removed": self.removed}
        return {
            "step": self.kind,
            "says": self.says,
            **{name: number for name, number in numbers.items() if number is not None},
            **{name: list(each) for name, each in lists.items() if each},
            **({"inside": [each.value() for each in self.inside]} if self.inside else {}),
        }

    def lines(self, depth: int = 0) -> Iterator[str]:
        margin = "  " * depth
        yield f"{margin}{self.name}: {self._counts()}"
        for word, examples in (("found", self.found), ("inferred from", self.inferred), ("removed", self.removed)):
            yield from (f"{margin}    {word} {each}" for each in examples)
        for each in self.inside:
            yield from each.lines(depth + 1)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.says}".rstrip()

    def _counts(self) -> str:
        if self.before is not None:
            return f"{self.solutions} of {_counted(self.before, 'solution')}"
        alone = "" if self.alone is None else f"{_counted(self.alone, 'triple')}, "
        return alone + _counted(self.solutions, "solution")


@dataclass(frozen=True)
class Explanation:
    """Why an event matched, or the first part of the query that it failed."""

    root: Step

    @property
    def matched(self) -> bool:
        return self.root.solutions > 0

    def text(self) -> str:
        failed = self.root.failed()
        verdict = "matched" if failed is None else f"not matched: nothing is left after {failed.name}"
        return "\n".join([verdict, *self.root.lines()]) + "\n"

    def value(self) -> dict[str, Any]:
        """`failed` is the step after which nothing was left, without those inside it; null where the event matched."""
        failed = self.root.failed()
        told = None if failed is None else {"step": failed.kind, "says": failed.says}
        return {"matched": self.matched, "failed": told, "steps": self.root.value()}


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
