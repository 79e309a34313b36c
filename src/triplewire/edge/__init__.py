"""The edge: HTTP in front of log, outbox and history."""

from triplewire.edge.app import application
from triplewire.edge.parts import Parts
from triplewire.edge.server import serve, serve_on

__all__ = ["Parts", "application", "serve", "serve_on"]
