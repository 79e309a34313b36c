"""One by one: a subscription on an event without an engine, for the few pairs that are not worth planning a query."""

from triplewire.matching.singles.batches import Batch
from triplewire.matching.singles.events import Parsed
from triplewire.matching.singles.ontologies import Ontologies
from triplewire.matching.singles.singles import Rows, Single, single_of

__all__ = ["Batch", "Ontologies", "Parsed", "Rows", "Single", "single_of"]
