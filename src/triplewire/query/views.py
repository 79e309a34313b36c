"""Views: the relations that compiled queries read, in words that both engines understand."""

from __future__ import annotations

TIMES = ("object_time", "time", "received")
"""The columns that hold instants, which are read as times in UTC."""

HEADERS = "position, graph, stream, source, application, time, received"
EVENTS = f"SELECT {HEADERS} FROM quads WHERE quad = 0"
"""The headers of events: its first quad stands for each."""
