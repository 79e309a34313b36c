"""Administration over HTTP: templates, ontologies, policies, shapes, erasures, webhooks, tokens, repeaters, continuous
queries, and the state of an edge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

from triplewire.client.requests import BaseClient, Json
from triplewire.model import ErasureScope
from triplewire.rdf import TURTLE


class AdministrationClient(BaseClient):
    """Resources of an edge beside events and subscriptions, and its status."""

    async def put_template(self, name: str, sparql: str, parameters: Mapping[str, Any] | None = None) -> Json:
        """Create or replace a template; return `name`, `version`, `sparql`, `parameters`."""
        value = {"sparql": sparql, **({} if parameters is None else {"parameters": parameters})}
        return await self._call("PUT", f"/templates/{name}", json=value)

    async def templates(self) -> list[Json]:
        """Return all templates, in the order of their last changes."""
        return await self._list("/templates", "templates")

    async def template(self, name: str) -> Json:
        return await self._call("GET", f"/templates/{name}")

    async def remove_template(self, name: str) -> None:
        """Remove a template; subscriptions made from it stay."""
        await self._send("DELETE", f"/templates/{name}")

    async def load_ontology(self, name: str, body: bytes | str, content_type: str = TURTLE.media_type) -> Json:
        """Create or replace an ontology; return `name`, `version`, `triples`, `classes`, `properties`."""
        data = body.encode() if isinstance(body, str) else body
        headers = {"Content-Type": content_type}
        return await self._call("PUT", f"/ontologies/{name}", data=BytesIO(data), headers=headers)

    async def ontologies(self) -> list[Json]:
        """Return all ontologies, without their triples."""
        return await self._list("/ontologies", "ontologies")

    async def ontology(self, name: str, content_type: str = TURTLE.media_type) -> bytes:
        """Return the triples in a syntax."""
        return await self._send("GET", f"/ontologies/{name}", headers={"Accept": content_type})

    async def remove_ontology(self, name: str) -> None:
        """Remove an ontology; queries are answered without it from now on."""
        await self._send("DELETE", f"/ontologies/{name}")

    async def load_policy(self, text: str) -> Json:
        """Replace the policy; return its `version` and the number of its `rules`."""
        headers = {"Content-Type": "application/toml"}
        return await self._call("PUT", "/policy", data=BytesIO(text.encode()), headers=headers)

    async def policy(self, version: str | None = None) -> str:
        """Return the text of the policy in force, or of an older version."""
        parameters = "" if version is None else f"?version={quote(version, safe='')}"
        return (await self._send("GET", f"/policy{parameters}")).decode()

    async def policy_versions(self) -> list[Json]:
        """Return all versions, the newest first."""
        return await self._list("/policy/versions", "versions")

    async def remove_policy(self) -> None:
        await self._send("DELETE", "/policy")

    async def put_shapes(
        self, stream: str, body: bytes | str, content_type: str = TURTLE.media_type, mode: str = "refuse"
    ) -> Json:
        """Create or replace the shapes of a stream; return `stream`, `mode`, `version`, `triples`.

        Events published from now on that do not conform are refused, or marked if the mode is `mark`.
        """
        data, headers = body.encode() if isinstance(body, str) else body, {"Content-Type": content_type}
        path = f"/streams/{stream}/shapes"
        return await self._call("PUT", path, data=BytesIO(data), headers=headers, params={"mode": mode})

    async def shapes(self, stream: str, content_type: str = TURTLE.media_type) -> bytes:
        """Return the shapes of a stream in a syntax."""
        return await self._send("GET", f"/streams/{stream}/shapes", headers={"Accept": content_type})

    async def remove_shapes(self, stream: str) -> None:
        """Remove the shapes of a stream; events are not validated from now on."""
        await self._send("DELETE", f"/streams/{stream}/shapes")

    async def erase(self, scope: ErasureScope | str, name: str, by: str | None = None) -> Json:
        """Erase the `event` of an id, all events of a `source`, or all quads with an IRI as `subject` or object.

        Returns the receipt. The erasure is complete when the receipt has a time in `completed`.
        """
        author = {} if by is None else {"by": by}
        if scope == ErasureScope.EVENT:
            return await self._call("DELETE", f"/events/{quote(name, safe='')}", params=author)
        return await self._call("DELETE", "/events", params={str(scope): name, **author})

    async def erasure(self, id: str) -> Json:
        """Return a receipt."""
        return await self._call("GET", f"/erasures/{id}")

    async def erasures(self) -> list[Json]:
        """Return all receipts, in the order of their last changes."""
        return await self._list_pages("/erasures", "erasures")

    async def webhooks(self) -> list[Json]:
        """Return all webhooks with their progress."""
        return await self._list_pages("/hooks", "hooks")

    async def dead_letters(self, id: str) -> list[Json]:
        """Return the notifications that could not be delivered to a webhook."""
        return await self._list_pages(f"/subscriptions/{id}/dead-letters", "letters")

    async def replay(self, id: str, positions: Sequence[str] | None = None) -> Json:
        """Deliver dead letters again, all or those at positions; return their number."""
        chosen = {"positions": list(positions)} if positions else {}
        return await self._call("POST", f"/subscriptions/{id}/replay", json=chosen)

    async def drop_dead_letters(self, id: str, positions: Sequence[str] | None = None) -> None:
        """Delete dead letters, all or those at positions."""
        chosen = [("position", each) for each in positions or ()]
        await self._send("DELETE", f"/subscriptions/{id}/dead-letters", params=chosen)

    async def create_token(
        self, name: str, allow: Sequence[str], *, roles: Sequence[str] = (), expires: str | None = None
    ) -> Json:
        """Create a token; return its description and, this once, its text as `token`.

        `allow` lists its scopes (`publish:home`), `expires` limits its lifetime (`30d`).
        """
        request = {"name": name, "allow": list(allow), "roles": list(roles)}
        return await self._call("POST", "/tokens", json=request | ({} if expires is None else {"expires": expires}))

    async def tokens(self) -> list[Json]:
        """Return all tokens, in the order of their creation, without their texts."""
        return await self._list("/tokens", "tokens")

    async def revoke_token(self, id: str) -> None:
        """Revoke a token; clients that are connected with it are disconnected."""
        await self._send("DELETE", f"/tokens/{id}")

    async def announce_repeater(self, id: str, status: Mapping[str, Any]) -> None:
        """Announce that a relay serves streams of this edge: `streams`, `load`, `free`. Valid for some seconds."""
        await self._send("PUT", f"/repeaters/{id}", json=dict(status))

    async def withdraw_repeater(self, id: str) -> None:
        await self._send("DELETE", f"/repeaters/{id}")

    async def health(self) -> Json:
        """Return the health of the edge, also when it is bad."""
        return await self._call("GET", "/health", accept_failure=True)

    async def edges(self) -> list[Json]:
        """Return the status of each edge that serves the same directory as this one."""
        return await self._list("/edges", "edges")

    async def streams(self) -> list[Json]:
        """Return what these edges deliver together, by stream."""
        return await self._list("/streams", "streams")


class ContinuousQueryOptions(TypedDict, total=False):
    """Options of a continuous query beside its text."""

    name: str
    semantics: str
    streams: Sequence[str]
    within: float | str
    span: int
    time: str
    lateness: float | str
    late: str
    into: str
    start: str
    """The field `from`, which is a keyword of Python: `earliest`, a position, or a time."""


def rename_start(options: Mapping[str, Any]) -> Json:
    """Return options with the names that the edge has for them."""
    return {("from" if name == "start" else name): value for name, value in options.items()}


class ContinuousQueryClient(AdministrationClient):
    """Registration of continuous queries."""

    async def register(self, text: str, **options: Unpack[ContinuousQueryOptions]) -> Json:
        """Register a query over all events that are published from now on, and over earlier ones since `start`."""
        return await self._call("POST", "/queries", json={"query": text, **rename_start(options)})

    async def register_all(self, requests: Sequence[Mapping[str, Any]]) -> list[Json]:
        """Register many queries, all or none: objects with `query` and options."""
        return await self._post_all("/queries", requests)

    async def queries(self) -> list[Json]:
        """Return all continuous queries, in the order of their registration."""
        return await self._list_pages("/queries", "queries")

    async def find_query(self, id: str) -> Json:
        """Return a continuous query with its figures."""
        return await self._call("GET", f"/queries/{id}")

    async def end_query(self, id: str) -> None:
        await self._send("DELETE", f"/queries/{id}")
