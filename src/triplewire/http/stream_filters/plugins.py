"""Filters over batches of events: by header and vocabulary, and plug-in filters in Python, found as entry points of
the group `triplewire.filters`.

A plug-in is asked by one thread at a time, sees every event that the rest of the address lets through once and in
order, and may keep state. It must not block for long, since other filtered streams wait for it. One that raises is
given up and its clients are told so. A package names its plug-ins in its `pyproject.toml`:

    [project.entry-points."triplewire.filters"]
    changed = "my_package.filters:Changed"
"""

from __future__ import annotations

import inspect
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from triplewire.http.stream_filters.parameters import PluginCall, StreamView
from triplewire.model.cache import BoundedCache
from triplewire.model.errors import BadRequest, TriplewireError, Unavailable
from triplewire.model.events import drop_opaque_payloads
from triplewire.model.subscriptions import ANSWER
from triplewire.model.terms import RDF_TYPE

CHANGED_SUBJECTS: Final = 100_000
"""Subjects whose values the filter `changed` remembers, the latest ones: at worst 50 MB for short terms. One that is
forgotten counts as new."""

_WIDTH = 3


def is_rdf(batch: pa.Table) -> pa.ChunkedArray:
    """Return for each event whether it is RDF; others are opaque payloads."""
    return pc.is_in(batch["position"], value_set=drop_opaque_payloads(batch)["position"].combine_chunks())


def split_quads(batch: pa.Table) -> pa.Table:
    """Return a table of quads: `row`, the number of the event in the batch, and `subject`, `predicate` and `object` as
    canonical N-Triples text; in order. Events that are not RDF have none."""
    texts = pc.if_else(is_rdf(batch), batch["text"], None).combine_chunks()
    lines = pc.split_pattern(texts, "\n")
    terms = pc.split_pattern(pc.list_flatten(lines), "\t")
    rows = pc.list_parent_indices(lines)
    whole = pc.equal(pc.list_value_length(terms), _WIDTH)
    rows, terms = pc.filter(rows, whole), pc.filter(terms, whole)
    subject, predicate, object_ = (pc.list_element(terms, column) for column in range(_WIDTH))
    return pa.table({"row": rows, "subject": subject, "predicate": predicate, "object": object_})


Mask = npt.NDArray[np.bool_]
"""A boolean for each event of a batch."""

_LAST = "\U0010ffff"
"""Sorts after whatever may follow the prefix of an IRI."""


class FilterBatch:
    """A table of `ENTRIES`. A condition that several filters share is evaluated once, by term and not by event."""

    def __init__(self, entries: pa.Table) -> None:
        self.entries = entries
        self._columns: dict[str, TermIndex] = {}
        self._masks: dict[tuple[str, tuple[str, ...]], Mask] = {}

    def passing(self, view: StreamView) -> Mask:
        """Return the events of its stream that pass all but queries and plug-ins."""
        mask, filter = self._among("stream", (view.stream,)), view.filter
        mask = mask if view.query is None else mask & self._answering(view.query)
        if filter is None:
            return mask
        for name in ("source", "application"):
            values: tuple[str, ...] = getattr(filter, name)
            mask = mask & self._among(name, values) if values else mask
        mask = mask & self._of_vocabulary(filter.vocabulary) if filter.vocabulary else mask
        return mask & self._rdf if filter.asks else mask

    def _among(self, column: str, values: tuple[str, ...]) -> Mask:
        mask = self._masks.get((column, values))
        if mask is None:
            if column not in self._columns:
                self._columns[column] = TermIndex(self.entries[column], np.arange(self.entries.num_rows))
            mask = self._masks[column, values] = self._columns[column].among(values, self.entries.num_rows)
        return mask

    def _answering(self, query: str) -> Mask:
        return np.asarray(pc.starts_with(self.entries["event"], f"{ANSWER}{query}:").to_numpy(), bool)

    def _of_vocabulary(self, prefixes: tuple[str, ...]) -> Mask:
        mask = self._masks.get(("vocabulary", prefixes))
        if mask is None:
            mask = self._vocabulary.begin(tuple("<" + each for each in prefixes), self.entries.num_rows)
            self._masks["vocabulary", prefixes] = mask
        return mask

    @cached_property
    def _rdf(self) -> Mask:
        return np.asarray(is_rdf(self.entries).to_numpy(), bool)

    @cached_property
    def _vocabulary(self) -> TermIndex:
        """Predicates and classes."""
        quads = split_quads(self.entries)
        classes = quads.filter(pc.equal(quads["predicate"], RDF_TYPE))
        named = pa.chunked_array([*quads["predicate"].chunks, *classes["object"].chunks], pa.string())
        return TermIndex(named, np.concatenate([quads["row"].to_numpy(), classes["row"].to_numpy()]))


class TermIndex:
    """The distinct terms of events, sorted, and the rows that have each."""

    def __init__(self, column: pa.ChunkedArray, rows: npt.NDArray[np.int64]) -> None:
        valid = np.asarray(column.is_valid().to_numpy(), bool)
        encoded = column.drop_null().combine_chunks().dictionary_encode()
        names: list[str] = encoded.dictionary.to_pylist()
        order = sorted(range(len(names)), key=names.__getitem__)
        ranks = np.zeros(len(names), np.int64)
        ranks[order] = np.arange(len(names))
        self._names = [names[each] for each in order]
        self._ranks = ranks[encoded.indices.to_numpy()]
        self._rows = rows[valid]

    def among(self, names: tuple[str, ...], events: int) -> Mask:
        """Return for each event whether it has one of these terms."""
        return self._select([(name, name + "\0") for name in names], events)

    def begin(self, prefixes: tuple[str, ...], events: int) -> Mask:
        """Return for each event whether one of its terms has one of these prefixes."""
        return self._select([(each, each + _LAST) for each in prefixes], events)

    def _select(self, spans: list[tuple[str, str]], events: int) -> Mask:
        mask = np.zeros(events, bool)
        for first, last in spans:
            start, stop = bisect_left(self._names, first), bisect_left(self._names, last)
            if start < stop:
                mask[self._rows[(self._ranks >= start) & (self._ranks < stop)]] = True
        return mask


ENTRY_POINT_GROUP = "triplewire.filters"

logger = logging.getLogger(__name__)

Verdict: TypeAlias = pa.Array | pa.ChunkedArray | np.ndarray | Sequence[bool | None]


@runtime_checkable
class PluginFilter(Protocol):
    """Decides about the events of one stream for all clients with the same address.

    It may keep state: it is called by one thread at a time, and sees every event that the rest of the address lets
    through once, and in order.
    """

    def passes(self, batch: pa.Table) -> Verdict:
        """Return a boolean for each event of a batch, a table of `ENTRIES` of at least one row; null is false. It must
        not block for long, since other filtered streams wait for it. If it raises it is given up, and its clients are
        told so and cut off."""


PluginFactory: TypeAlias = Callable[..., PluginFilter]
"""Makes a plug-in from the parameters of an address, as texts by name. Raises ValueError for a wrong one, with a
message that says what would be right."""


class PluginFailed(TriplewireError):
    """A plug-in raised, or did not return a boolean for each event."""


class PluginFilters:
    """Plug-ins by name. Plug-ins of installed packages are imported at first use."""

    def __init__(self, makers: Mapping[str, PluginFactory | EntryPoint]) -> None:
        self._makers = dict(makers)

    @classmethod
    def installed(cls) -> PluginFilters:
        """Return the plug-ins of all installed packages."""
        return cls({each.name: each for each in entry_points(group=ENTRY_POINT_GROUP)})

    def make(self, chosen: PluginCall) -> PluginFilter:
        """Make a new plug-in. Raises BadRequest for an unknown name or parameter, Unavailable for a plug-in that does
        not work here. It may import a package: call it from a thread."""
        maker, parameters = self._maker(chosen.name), dict(chosen.parameters)
        try:
            inspect.signature(maker).bind(**parameters)
            plugin = maker(**parameters)
        except (TypeError, ValueError) as error:
            raise BadRequest(f"the filter {chosen.name}: {error}; it takes {_describe_parameters(maker)}") from error
        except Exception as error:
            raise _unavailable(chosen.name, error) from error
        if not isinstance(plugin, PluginFilter):
            raise _unavailable(chosen.name, f"{type(plugin).__name__} has no method passes")
        return plugin

    def _maker(self, name: str) -> PluginFactory:
        maker = self._makers.get(name)
        if maker is None:
            known = ", ".join(sorted(self._makers)) or "none"
            raise BadRequest(f"there is no filter {name!r} here; there are {known}")
        if not callable(maker):
            # An entry point, which may be of another class where the package importlib_metadata was imported.
            try:
                maker = self._makers[name] = maker.load()
            except Exception as error:
                raise _unavailable(name, error) from error
        return maker


def apply_plugin(filter: PluginFilter, batch: pa.Table) -> Mask:
    """Return the events of a batch that a plug-in lets through. Raises PluginFailed, whatever the plug-in does."""
    if not batch.num_rows:
        return np.zeros(0, bool)
    try:
        verdict = filter.passes(batch)
        given = verdict.to_pylist() if isinstance(verdict, pa.Array | pa.ChunkedArray) else list(verdict)
    except Exception as error:
        raise PluginFailed(f"it raised {type(error).__name__}") from error
    if len(given) != batch.num_rows:
        raise PluginFailed(f"it returned {len(given)} values for {batch.num_rows} events")
    if not all(each is None or isinstance(each, bool | np.bool_) for each in given):
        raise PluginFailed("it returned something other than true or false for an event")
    return np.array([bool(each) for each in given], bool)


def _describe_parameters(maker: PluginFactory) -> str:
    parameters = inspect.signature(maker).parameters.values()
    defaults = {each.name: "" if each.default is each.empty else f" (default {each.default!r})" for each in parameters}
    return ", ".join(f"filter.{name}{default}" for name, default in defaults.items()) or "no parameters"


def _unavailable(name: str, error: object) -> Unavailable:
    logger.error("the filter %s cannot be made: %s", name, error)
    return Unavailable(f"the filter {name} does not work here; the log of the edge has the reason")


class ChangedFilter:
    """Passes events in which a subject has another value of a property than in the last event that had one.

    `filter=changed&filter.property=<IRI>`. Several values of a subject in one event are one set. The first value of a
    subject is a change; an event without the property does not pass. The last `most` subjects are remembered.
    """

    def __init__(self, property: str, most: str = str(CHANGED_SUBJECTS)) -> None:
        if ":" not in property:
            raise ValueError(f"property must be an IRI, written out, not {property!r}")
        self._predicate = f"<{property.removeprefix('<').removesuffix('>')}>"
        if not most.isdecimal() or not 1 <= int(most) <= CHANGED_SUBJECTS:
            raise ValueError(f"most must be a number from 1 to {CHANGED_SUBJECTS}, not {most!r}")
        self._last: BoundedCache[str, frozenset[str]] = BoundedCache(int(most))

    def passes(self, batch: pa.Table) -> pa.Array:
        quads = split_quads(batch)
        quads = quads.filter(pc.equal(quads["predicate"], self._predicate))
        values = defaultdict[tuple[int, str], set[str]](set)
        columns = (quads[name].to_pylist() for name in ("row", "subject", "object"))
        for row, subject, value in zip(*columns, strict=True):
            values[row, subject].add(value)
        passed = [False] * batch.num_rows
        for (row, subject), present in values.items():
            passed[row] |= self._differs(subject, frozenset(present))
        return pa.array(passed)

    def _differs(self, subject: str, value: frozenset[str]) -> bool:
        before = self._last.get(subject)
        self._last.put(subject, value)
        return before != value
