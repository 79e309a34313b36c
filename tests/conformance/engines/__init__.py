"""Engines: who answers. Each is loaded when it is asked for, as Spark takes its time."""

from tests.conformance.engines.ports import ENGINES, Engine, Refused, start

__all__ = ["ENGINES", "Engine", "Refused", "start"]
