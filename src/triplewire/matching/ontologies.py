"""Ontologies: all that are loaded, as the one relation that ontological operators look things up in."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache

import duckdb
import pyarrow as pa

from triplewire.model.errors import InputError
from triplewire.sparql.entailment.owl_rl import ClosureRow, compute_closure
from triplewire.storage.registry.ontologies import ONTOLOGY, LoadedOntology, ontology_from_change
from triplewire.storage.registry.ports import RegistryChange

logger = logging.getLogger(__name__)

_TABLE = "CREATE OR REPLACE TABLE closure (relation VARCHAR, lower VARCHAR, upper VARCHAR)"


class Closures:
    """The table `closure` of a connection, kept up by registry changes. Not safe for threads.

    Changes are collected and reach the table together, at the next `prepare`. Until then it is as it was; at first it
    is there and empty.
    """

    def __init__(self, duck: duckdb.DuckDBPyConnection) -> None:
        self._duck = duck
        self._loaded: dict[str, LoadedOntology] = {}
        self._stale = False
        self.rows: Sequence[ClosureRow] = ()
        """What the table holds."""
        self._duck.execute(_TABLE)

    def apply(self, change: RegistryChange) -> bool:
        """Take in a change; whether it concerns an ontology, so that `prepare` has something to do."""
        if change.kind != ONTOLOGY:
            return False
        self._loaded.pop(change.key, None)
        if change.value is not None:
            self._loaded[change.key] = ontology_from_change(change)
        self._stale = True
        return True

    def prepare(self) -> bool:
        """Bring the table up to date with all changes; whether there were any."""
        if not self._stale:
            return False
        self._duck.execute(_TABLE)
        self.rows = self._rows()
        columns = [pa.array(each, pa.string()) for each in zip(*self.rows, strict=True)]
        if columns:
            self._duck.register("told", pa.table(columns, names=["relation", "lower", "upper"]))
            self._duck.execute("INSERT INTO closure SELECT * FROM told")
            self._duck.unregister("told")
        self._stale = False
        return True

    def _rows(self) -> Sequence[ClosureRow]:
        """Of all ontologies together. Where they are too large for that, those that were loaded last are left out: the
        same in every process, and better than to stand still."""
        loaded = sorted(self._loaded.values(), key=lambda each: each.version)
        while loaded:
            try:
                return _closed(tuple(each.text for each in loaded))
            except InputError as error:
                logger.warning("the ontology %s is left out: %s", loaded.pop().name, error)
        return []


@lru_cache(maxsize=1)
def _closed(texts: tuple[str, ...]) -> Sequence[ClosureRow]:
    """Remembered, because evaluators of one process have the same ontologies."""
    return compute_closure(triple for text in texts for triple in _triples(text))


def _triples(text: str) -> Iterator[tuple[str, str, str]]:
    for line in text.split("\n"):
        subject, predicate, object_ = line.split("\t")
        yield subject, predicate, object_
