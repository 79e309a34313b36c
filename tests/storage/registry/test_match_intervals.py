"""Stretches: each position after a subscription was made is matched by what held at it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.model import END, Kind, Subscription
from triplewire.storage.memory import MemoryRegistry, PositionSequence
from triplewire.storage.registry.ontologies import (
    NEWEST_ONTOLOGIES,
    ONTOLOGIES_VERSION,
    ONTOLOGY,
    past_interval,
    present_intervals,
)
from triplewire.storage.registry.subscriptions import (
    SUBSCRIPTION,
    end_subscription,
    read_versions,
    revise_subscription,
    subscription_from_change,
    subscription_to_value,
)

NAMES = ("a", "b")
STEPS = st.lists(st.sampled_from(["load a", "load b", "remove a", "remove b", "revise", "other"]), max_size=12)


class World:
    """A registry with one subscription, and what is known to hold at each position."""

    def __init__(self) -> None:
        self.registry = MemoryRegistry(PositionSequence())
        self.loaded: dict[str, int] = {}
        self.made: Subscription | None = None
        self.held: dict[int, tuple[int, tuple[int, ...]]] = {}
        """At positions of others, which may be events: the version, and where ontologies were loaded."""

    def take(self, step: str) -> None:
        word, _, name = step.partition(" ")
        if word in ("load", "remove"):
            value = {"text": ""} if word == "load" else None
            _, position = self.registry.put([(ONTOLOGIES_VERSION, NEWEST_ONTOLOGIES, {}), (ONTOLOGY, name, value)])
            self.loaded.pop(name, None)
            self.loaded |= {name: position} if word == "load" else {}
        elif word == "revise" and self.made is not None:
            self.put(revise_subscription(self.made, f"shape {len(self.made.earlier)}", ()))
        else:
            (position,) = self.registry.put([("other", "x", {})])
            if self.made is not None:
                self.held[position] = (self.made.since, tuple(sorted(self.loaded.values())))

    def put(self, subscription: Subscription) -> None:
        (position,) = self.registry.put([(SUBSCRIPTION, "s", subscription_to_value(subscription))])
        self.made = replace(subscription, since=position)


def asking(world: World) -> None:
    known = tuple(world.loaded.values())
    world.put(Subscription("s", "ASK {}", Kind.SIGNAL, "shape", (), begins=1, ontologies=known))


@given(STEPS, STEPS, st.booleans(), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_every_position_has_what_held_at_it(before: list[str], after: list[str], ending: bool, window: int) -> None:
    world = World()
    for step in before:
        world.take(step)
    asking(world)
    for step in after:
        world.take(step)
    found = world.registry.get(SUBSCRIPTION, "s")
    assert found is not None
    known = read_versions(world.registry, subscription_from_change(found))
    if ending:
        (until,) = world.registry.put([(SUBSCRIPTION, "s", None)])
        known[-1] = end_subscription(known[-1], until)
    intervals = list(present_intervals(world.registry, known, 100, window))
    told = {
        position: (each.version.since, each.ontologies)
        for each in intervals
        for position in world.held
        if each.start < position < each.stop
    }
    assert told == world.held
    assert intervals[0].start == known[0].made
    assert intervals[-1].stop == (known[-1].until if ending else END)


def test_the_past_is_that_of_the_first_version() -> None:
    world = World()
    for step in ("load a", "other", "load b"):
        world.take(step)
    asking(world)
    made = world.made
    for step in ("remove a", "revise", "load b", "revise"):
        world.take(step)
    assert made is not None
    assert world.made is not None
    found = past_interval(world.registry, world.made)
    assert (found.start, found.stop, found.version) == (0, made.since, made)
    assert found.ontologies == (2, 5)


def test_a_load_that_came_while_it_was_made_counts_from_then_on() -> None:
    world = World()
    world.take("load a")
    subscription = Subscription("s", "ASK {}", Kind.SIGNAL, "shape", (), begins=1, ontologies=(2,))
    world.take("load b")
    world.put(subscription)
    assert world.made is not None
    assert past_interval(world.registry, world.made).ontologies == (2,)
    (found,) = present_intervals(world.registry, [world.made], 100)
    assert found.ontologies == (2, 4)
