"""Guests: who is sent away, who stays, and who is forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from triplewire.http.auth import EXPIRY_SECONDS, Sessions
from triplewire.model.clock import ManualClock
from triplewire.security import Principal


@dataclass(eq=False)
class Connection:
    """Open until it is aborted, or a test closes it."""

    aborted: bool = False
    closed: bool = False

    def abort(self) -> None:
        self.aborted = self.closed = True

    def is_closing(self) -> bool:
        return self.closed


@dataclass
class World:
    clock: ManualClock = field(default_factory=ManualClock)
    version: int = 0
    bad: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.guests = Sessions(self.clock, lambda: self.version, lambda principal: principal.name not in self.bad)

    def enter(self, name: str, seconds: float | None = None) -> Connection:
        made = Connection()
        until = None if seconds is None else self.clock.now() / 1_000_000 + seconds
        self.guests.enter(Principal(name, expires=until), made)
        return made


@pytest.fixture
def world() -> World:
    return World()


def test_those_who_are_welcome_no_more_are_sent_away_and_others_stay(world: World) -> None:
    ann, bob, again = world.enter("ann"), world.enter("bob"), world.enter("ann")
    world.bad.add("ann")
    assert world.guests.check() == 0, "nothing is said to have changed"
    world.version = 1
    assert world.guests.check() == 2
    assert (ann.aborted, bob.aborted, again.aborted) == (True, False, True)
    assert len(world.guests) == 1


def test_one_who_expires_is_sent_away_in_time(world: World) -> None:
    ann, bob = world.enter("ann", 10.0), world.enter("bob", 20.0)
    world.clock.advance(10.0 - EXPIRY_SECONDS)
    assert world.guests.check() == 0
    world.clock.advance(EXPIRY_SECONDS)
    assert world.guests.check() == 1
    assert (ann.aborted, bob.aborted) == (True, False)


def test_a_connection_is_whose_request_came_last(world: World) -> None:
    ann = world.enter("ann")
    world.guests.enter(Principal("bob"), ann)
    world.bad.add("ann")
    world.version = 1
    assert world.guests.check() == 0


def test_those_who_have_gone_are_forgotten(world: World) -> None:
    connections = [world.enter("ann") for _ in range(10)]
    for each in connections[:7]:
        each.closed = True
    world.clock.advance(EXPIRY_SECONDS)
    assert world.guests.check() == 0
    assert len(world.guests) == 3


def test_one_without_a_connection_is_not_remembered(world: World) -> None:
    world.guests.enter(Principal("ann"), None)
    assert len(world.guests) == 0
