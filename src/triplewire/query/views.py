"""Views: the relations that compiled queries read, in words that both engines understand."""

from __future__ import annotations

from triplewire.lake.quads import QUADS

TIMES = ("object_time", "time", "received")
"""The columns that hold instants, which are read as times in UTC."""

READ = tuple(name for name in QUADS.names if name != "extensions")
"""The columns of quads that queries read."""

HEADERS = "position, graph, stream, source, application, time, received"
EVENTS = f"SELECT {HEADERS} FROM quads WHERE quad = 0"
"""The headers of events: its first quad stands for each."""
