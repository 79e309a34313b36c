"""A client for programs: `AsyncClient`, and `Client` for those without an event loop."""

from triplewire.client.answers import Answer, How, Rows
from triplewire.client.blocking import Client
from triplewire.client.connections import AsyncClient
from triplewire.client.pages import Page

__all__ = ["Answer", "AsyncClient", "Client", "How", "Page", "Rows"]
