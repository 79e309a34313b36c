"""Querying: SPARQL over history, and the ontologies that give its words a meaning."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract.operations import Operation

_ADMIN = (Verb.ADMIN,)
_READ = (Verb.QUERY, Verb.SUBSCRIBE, Verb.ADMIN)

ASK = Operation("query", "Ask SPARQL of history", (Verb.QUERY,))
ASK_BY_POST = Operation("queryByPost", "Ask SPARQL of history, with the query in the body", (Verb.QUERY,))
ONTOLOGIES = Operation("listOntologies", "See the ontologies", _READ)
FIND_ONTOLOGY = Operation("findOntology", "Read an ontology", _READ)
LOAD_ONTOLOGY = Operation("loadOntology", "Load or replace an ontology", _ADMIN)
REMOVE_ONTOLOGY = Operation("removeOntology", "Remove an ontology", _ADMIN)
