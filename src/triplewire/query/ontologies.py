"""Ontologies: those that are loaded, as queries use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triplewire.errors import NotFound
from triplewire.registry.ontologies import NEWEST, ONTOLOGY, VERSION, Loaded, from_change
from triplewire.registry.ports import Registry
from triplewire.sparql.ontologies import Ontology, Triple, ontology_of


class Ontologies:
    """What the registry holds, made into tables once for each of its versions. Not for several threads at once."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._version = 0
        self._loaded: dict[str, Loaded] = {}
        self._made: dict[tuple[str, ...], Ontology] = {}

    def of(self, names: Sequence[str] | None = None) -> Ontology:
        """The ontologies of these names as one; of None, all that are loaded, of which there may be none.

        Raises NotFound for a name that has none, InputError if they are too large together.
        """
        self._refresh()
        chosen = tuple(sorted(self._loaded if names is None else set(names)))
        if chosen not in self._made:
            self._made[chosen] = ontology_of(triple for name in chosen for triple in self._triples(name))
        return self._made[chosen]

    def _refresh(self) -> None:
        newest = self._registry.get(VERSION, NEWEST)
        version = newest.position if newest else 0
        if version != self._version:
            self._loaded = {change.key: from_change(change) for change in self._registry.list(ONTOLOGY)}
            self._made = {}
            self._version = version

    def _triples(self, name: str) -> Iterator[Triple]:
        if name not in self._loaded:
            raise NotFound(f"there is no ontology {name}; there are {', '.join(sorted(self._loaded)) or 'none'}")
        for line in self._loaded[name].text.split("\n"):
            subject, predicate, object_ = line.split("\t")
            yield subject, predicate, object_
