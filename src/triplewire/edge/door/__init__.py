"""The door: who asks, and whether they may."""

from triplewire.edge.door.doors import Door
from triplewire.edge.door.guests import Guests
from triplewire.edge.door.ports import Authenticator
from triplewire.edge.door.witnesses import Witness

__all__ = ["Authenticator", "Door", "Guests", "Witness"]
