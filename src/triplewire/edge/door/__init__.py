"""The door: who asks, and whether they may."""

from triplewire.edge.door.doors import Door
from triplewire.edge.door.ports import Authenticator

__all__ = ["Authenticator", "Door"]
