"""Zone maps for tests: any sequence of splits and merges, at keys of terms and at texts that are none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from hypothesis import strategies as st

from tests.storage.lake.terms import IRIS, OBJECTS
from triplewire.storage.lake.keys import DIMENSIONS, TRANSFORMATIONS, find_transformation, term_key
from triplewire.storage.lake.zones import ZoneLayout

ODD = (
    "#",
    "$",
    '"',
    "<",
    "#8",
    "#c01\U00010000",
    "$80059b",
    "%",
    "\u07ff",
    "\U00088000",
    "#fff8",
    "#0",
    "$g",
    "<http:",
)
"""Bounds that are keys of no term."""

Step = tuple[str, int, str, str]
"""Split or merge; which zone or pair; the dimension; the bound."""

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["split", "split", "split", "merge"]),
        st.integers(0, 11),
        st.sampled_from(DIMENSIONS),
        st.sampled_from([*OBJECTS, *IRIS, *ODD]),
    ),
    max_size=14,
)
ORDERS = st.sampled_from([*TRANSFORMATIONS])
QUADS = st.lists(
    st.tuples(*(st.sampled_from(IRIS) for _ in range(3)), st.sampled_from(OBJECTS)), min_size=1, max_size=30
)


def after(steps: Sequence[Step], order: str = "none") -> ZoneLayout:
    """The map that follows from steps; those that cannot be taken are left out."""
    found = ZoneLayout(order=order)
    for step in steps:
        found = taken(found, step)
    return found


def taken(found: ZoneLayout, step: Step) -> ZoneLayout:
    """The map after one step, or as it was if the step cannot be taken."""
    name, number, dimension, text = step
    if name == "merge":
        pairs = mergeable(found)
        return found.merge(*pairs[number % len(pairs)]) if pairs else found
    zone = found.zones[number % len(found.zones)]
    bound = text if text in ODD else find_transformation(found.order).of_key(term_key(text))
    return found.split(zone.id, dimension, bound) if zone.box.side(dimension).cuts(bound) else found


def everywhere(order: str) -> ZoneLayout:
    """The map with a cut at every object, at every odd bound, and at some other terms."""
    found = ZoneLayout(order=order).split("z0", "graph", find_transformation(order).of_key("<urn:b>"))
    for dimension, text in (*(("object", each) for each in (*OBJECTS, *ODD)), *(("subject", each) for each in IRIS)):
        bound = text if text in ODD else find_transformation(order).of_key(term_key(text))
        cut = next((zone.id for zone in found.zones if zone.box.side(dimension).cuts(bound)), None)
        found = found.split(cut, dimension, bound) if cut else found
    return found


def mergeable(found: ZoneLayout) -> list[tuple[str, str]]:
    return [(one.id, other.id) for one, other in combinations(found.zones, 2) if one.box.joined(other.box)]
