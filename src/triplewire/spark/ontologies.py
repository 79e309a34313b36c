"""Ontologies: those that a broker has, for queries by what follows from them."""

from __future__ import annotations

from pathlib import Path

from triplewire.history.executor import OntologyTables
from triplewire.model.clock import SystemClock
from triplewire.model.errors import BadRequest
from triplewire.spark.lakes import Named
from triplewire.storage.registry.sqlite import SqliteRegistry

_REGISTRY = "log.db"


def ontologies_of(lake: Named) -> OntologyTables:
    """Of the broker whose data directory this is. Raises BadRequest for what is none."""
    file = Path(lake).expanduser() / _REGISTRY if isinstance(lake, str | Path) else None
    if file is None or not file.is_file():
        raise BadRequest(
            "entailment goes by the ontologies of a broker, which are in its data directory; "
            f"name that (it has the file {_REGISTRY}), not {lake!r:.200}"
        )
    return OntologyTables(SqliteRegistry(file, SystemClock()))
