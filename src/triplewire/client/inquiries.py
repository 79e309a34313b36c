"""Inquiries: continuous queries, registered at an edge, seen and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

from triplewire.client.administration import Administration
from triplewire.client.calls import Json


class Inquired(TypedDict, total=False):
    """What a continuous query may say beside its text."""

    name: str
    semantics: str
    streams: Sequence[str]
    within: float | str
    span: int
    time: str
    lateness: float | str
    late: str
    into: str
    begins: str
    """`from`, which is a word of Python."""


def asked(text: str, inquired: Mapping[str, Any]) -> Json:
    """What is sent for one."""
    return {"query": text, **{("from" if name == "begins" else name): each for name, each in inquired.items()}}


class Inquiries(Administration):
    """Standing questions across events, but for their answers."""

    async def register(self, text: str, **inquired: Unpack[Inquired]) -> Json:
        """The query that was registered: all that is published from now on counts for it, and what came since `begins`:
        `earliest`, a position, or a time."""
        made: Json = await self._call("POST", "/queries", json=asked(text, inquired))
        return made

    async def register_all(self, inquiries: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Many at once, all or none: objects with `query` and what else there is to say."""
        made: list[Json] = await self._call("POST", "/queries", json=list(inquiries))
        return made

    async def queries(self) -> list[Json]:
        """All of them, in the order in which they were registered."""
        found: list[Json] = []
        cursor: str | None = "earliest"
        while cursor is not None:
            page = await self._call("GET", "/queries", params={"cursor": cursor})
            found += page["queries"]
            cursor = page["next"]
        return found

    async def registered(self, id: str) -> Json:
        """One of them, and how it is doing."""
        found: Json = await self._call("GET", f"/queries/{id}")
        return found

    async def end_query(self, id: str) -> None:
        """From now on nothing counts for it."""
        await self._call("DELETE", f"/queries/{id}")
