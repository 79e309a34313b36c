"""Filters of a deployment: Python that decides which events are told, found by its name as an entry point.

A package that is installed beside Triplewire names them in its `pyproject.toml`:

```toml
[project.entry-points."triplewire.filters"]
changed = "my_package.filters:Changed"
```
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import pyarrow as pa

from triplewire.edge.sieves.batches import Mask
from triplewire.edge.sieves.sieves import Chosen
from triplewire.model.errors import BadRequest, TriplewireError, Unavailable

GROUP = "triplewire.filters"

logger = logging.getLogger(__name__)

Verdict: TypeAlias = pa.Array | pa.ChunkedArray | np.ndarray | Sequence[bool | None]


@runtime_checkable
class Filter(Protocol):
    """Decides about the events of one stream for all who listen with the same address.

    It may keep memory: it is asked by one thread at a time, sees every event that the rest of the address lets through
    once, and in order.
    """

    def passes(self, batch: pa.Table) -> Verdict:
        """One truth for each event of a batch, a table of `ENTRIES` of at least one row; null is no. It must not block
        for long: others who listen through sieves wait for it. Whoever raises is given up, and its listeners are told
        so and cut off."""


Maker: TypeAlias = Callable[..., Filter]
"""Makes a filter with the parameters of an address, as texts by name. Raises ValueError for one that cannot be, in
words that tell what would be right."""


class Broken(TriplewireError):
    """A filter of the deployment raised, or did not say of each event whether it passes."""


class Filters:
    """Makers by name. Those that come with packages are imported when they are first asked for."""

    def __init__(self, makers: Mapping[str, Maker | EntryPoint]) -> None:
        self._makers = dict(makers)

    @classmethod
    def installed(cls) -> Filters:
        """Those of all packages that are installed here."""
        return cls({each.name: each for each in entry_points(group=GROUP)})

    def make(self, chosen: Chosen) -> Filter:
        """A new one. Raises BadRequest for a name or a parameter that is not known, Unavailable for a filter that does
        not work here. It may import a package: call it from a thread."""
        maker, parameters = self._maker(chosen.name), dict(chosen.parameters)
        try:
            inspect.signature(maker).bind(**parameters)
            made = maker(**parameters)
        except (TypeError, ValueError) as error:
            raise BadRequest(f"the filter {chosen.name}: {error}; it takes {_taken(maker)}") from error
        except Exception as error:
            raise _broken_here(chosen.name, error) from error
        if not isinstance(made, Filter):
            raise _broken_here(chosen.name, f"{type(made).__name__} has no method passes")
        return made

    def _maker(self, name: str) -> Maker:
        found = self._makers.get(name)
        if found is None:
            known = ", ".join(sorted(self._makers)) or "none"
            raise BadRequest(f"there is no filter {name!r} here; there are {known}")
        if not callable(found):
            # An entry point, which may be of another class where the package importlib_metadata was imported.
            try:
                found = self._makers[name] = found.load()
            except Exception as error:
                raise _broken_here(name, error) from error
        return found


def judged(filter: Filter, batch: pa.Table) -> Mask:
    """Which events of a batch a filter lets through. Raises Broken, whatever it does."""
    if not batch.num_rows:
        return np.zeros(0, bool)
    try:
        verdict = filter.passes(batch)
        given = verdict.to_pylist() if isinstance(verdict, pa.Array | pa.ChunkedArray) else list(verdict)
    except Exception as error:
        raise Broken(f"it raised {type(error).__name__}") from error
    if len(given) != batch.num_rows:
        raise Broken(f"it said {len(given)} times of {batch.num_rows} events whether they pass")
    if not all(each is None or isinstance(each, bool | np.bool_) for each in given):
        raise Broken("it said something else than true or false of an event")
    return np.array([bool(each) for each in given], bool)


def _taken(maker: Maker) -> str:
    parameters = inspect.signature(maker).parameters.values()
    told = [
        each.name + ("" if each.default is each.empty else f" ({each.default!r} unless said)") for each in parameters
    ]
    return ", ".join(f"filter.{each}" for each in told) or "no parameters"


def _broken_here(name: str, error: object) -> Unavailable:
    logger.error("the filter %s cannot be made: %s", name, error)
    return Unavailable(f"the filter {name} does not work here; whoever runs this edge finds the reason in its log")
