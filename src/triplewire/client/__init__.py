"""A client for programs: `AsyncClient`, and `Client` for those without an event loop."""

from triplewire.client.async_client import AsyncClient
from triplewire.client.results import LogPage, QueryOptions, QueryResponse, ResultParser
from triplewire.client.sync_client import Client

__all__ = ["AsyncClient", "Client", "LogPage", "QueryOptions", "QueryResponse", "ResultParser"]
