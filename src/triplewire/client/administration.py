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
    """What is kept at an edge beside events and subscriptions, and what it tells of itself."""

    async def put_template(self, name: str, sparql: str, parameters: Mapping[str, Any] | None = None) -> Json:
        """The template in place of what had the name: `name`, `version`, `sparql`, `parameters`."""
        value = {"sparql": sparql, **({} if parameters is None else {"parameters": parameters})}
        made: Json = await self._call("PUT", f"/templates/{name}", json=value)
        return made

    async def templates(self) -> list[Json]:
        """All of them, in the order in which they were put."""
        found: list[Json] = (await self._call("GET", "/templates"))["templates"]
        return found

    async def template(self, name: str) -> Json:
        """One of them."""
        found: Json = await self._call("GET", f"/templates/{name}")
        return found

    async def remove_template(self, name: str) -> None:
        """Instances that were made of it stay."""
        await self._call("DELETE", f"/templates/{name}")

    async def load_ontology(self, name: str, body: bytes | str, content_type: str = TURTLE.media_type) -> Json:
        """What was loaded in place of what had the name: `name`, `version`, `triples`, `classes`, `properties`."""
        data = body.encode() if isinstance(body, str) else body
        headers = {"Content-Type": content_type}
        loaded: Json = await self._call("PUT", f"/ontologies/{name}", data=BytesIO(data), headers=headers)
        return loaded

    async def ontologies(self) -> list[Json]:
        """All that are loaded, without their triples."""
        found: list[Json] = (await self._call("GET", "/ontologies"))["ontologies"]
        return found

    async def ontology(self, name: str, content_type: str = TURTLE.media_type) -> bytes:
        """The triples of one, in a syntax of one's choice."""
        return await self._send("GET", f"/ontologies/{name}", headers={"Accept": content_type})

    async def remove_ontology(self, name: str) -> None:
        """Queries are answered without it from now on."""
        await self._call("DELETE", f"/ontologies/{name}")

    async def load_policy(self, text: str) -> Json:
        """The policy in place of what was in force: its `version`, and how many `rules` it has."""
        headers = {"Content-Type": "application/toml"}
        loaded: Json = await self._call("PUT", "/policy", data=BytesIO(text.encode()), headers=headers)
        return loaded

    async def policy(self, version: str | None = None) -> str:
        """The text of the policy in force, or of one that was."""
        asked = "" if version is None else f"?version={quote(version, safe='')}"
        return (await self._send("GET", f"/policy{asked}")).decode()

    async def policy_versions(self) -> list[Json]:
        """All that ever were, the newest first."""
        found: list[Json] = (await self._call("GET", "/policy/versions"))["versions"]
        return found

    async def remove_policy(self) -> None:
        """From now on there is none."""
        await self._call("DELETE", "/policy")

    async def put_shapes(
        self, stream: str, body: bytes | str, content_type: str = TURTLE.media_type, mode: str = "refuse"
    ) -> Json:
        """The shapes in place of those that the stream had: `stream`, `mode`, `version`, `triples`. What is published
        from now on and does not conform is refused, or with the mode `mark` marked."""
        data, headers = body.encode() if isinstance(body, str) else body, {"Content-Type": content_type}
        path = f"/streams/{stream}/shapes"
        made: Json = await self._call("PUT", path, data=BytesIO(data), headers=headers, params={"mode": mode})
        return made

    async def shapes(self, stream: str, content_type: str = TURTLE.media_type) -> bytes:
        """The shapes of a stream, in a syntax of one's choice."""
        return await self._send("GET", f"/streams/{stream}/shapes", headers={"Accept": content_type})

    async def remove_shapes(self, stream: str) -> None:
        """What is published from now on is not judged."""
        await self._call("DELETE", f"/streams/{stream}/shapes")

    async def erase(self, scope: ErasureScope | str, name: str, by: str | None = None) -> Json:
        """The receipt of an erasure: of the `event` of an id, of all that comes from a `source`, or of all quads that
        name an IRI as their `subject` or object. It is done when its `completed` says when."""
        given = {} if by is None else {"by": by}
        if scope == ErasureScope.EVENT:
            asked: Json = await self._call("DELETE", f"/events/{quote(name, safe='')}", params=given)
        else:
            asked = await self._call("DELETE", "/events", params={str(scope): name, **given})
        return asked

    async def erasure(self, id: str) -> Json:
        """A receipt."""
        found: Json = await self._call("GET", f"/erasures/{id}")
        return found

    async def erasures(self) -> list[Json]:
        """All receipts, in the order of their last changes."""
        return await self._pages("/erasures", "erasures")

    async def hooks(self) -> list[Json]:
        """Who is told by POST, and how far each is."""
        return await self._pages("/hooks", "hooks")

    async def dead_letters(self, id: str) -> list[Json]:
        """What was parked of a hook."""
        return await self._pages(f"/subscriptions/{id}/dead-letters", "letters")

    async def replay(self, id: str, positions: Sequence[str] | None = None) -> Json:
        """Have what was parked delivered again, all of it or what lies at positions: how many that is."""
        asked: Json = await self._call(
            "POST", f"/subscriptions/{id}/replay", json={"positions": list(positions)} if positions else {}
        )
        return asked

    async def drop_dead_letters(self, id: str, positions: Sequence[str] | None = None) -> None:
        """What was parked is not delivered any more, all of it or what lies at positions."""
        named = [("position", each) for each in positions or ()]
        await self._call("DELETE", f"/subscriptions/{id}/dead-letters", params=named)

    async def _pages(self, path: str, name: str) -> list[Json]:
        found: list[Json] = []
        cursor: str | None = "earliest"
        while cursor is not None:
            page = await self._call("GET", path, params={"cursor": cursor})
            found += page[name]
            cursor = page["next"]
        return found

    async def create_token(
        self, name: str, allow: Sequence[str], *, roles: Sequence[str] = (), expires: str | None = None
    ) -> Json:
        """A token for somebody: what it is told of, and the text of it as `token`, which nobody can tell afterwards.
        `allow` says what it lets do (`publish:home`), `expires` for how long (`30d`)."""
        order = {"name": name, "allow": list(allow), "roles": list(roles)}
        made: Json = await self._call("POST", "/tokens", json=order | ({} if expires is None else {"expires": expires}))
        return made

    async def tokens(self) -> list[Json]:
        """All of them, in the order in which they were made, without their texts."""
        found: list[Json] = (await self._call("GET", "/tokens"))["tokens"]
        return found

    async def revoke_token(self, id: str) -> None:
        """It is good for nothing from now on, and who came in by it is sent away."""
        await self._call("DELETE", f"/tokens/{id}")

    async def announce_repeater(self, id: str, told: Mapping[str, Any]) -> None:
        """A relay tells where streams of this edge can be heard as well: `streams`, `load`, `free`. It is believed for
        some seconds."""
        await self._call("PUT", f"/repeaters/{id}", json=dict(told))

    async def withdraw_repeater(self, id: str) -> None:
        """They cannot any more."""
        await self._call("DELETE", f"/repeaters/{id}")

    async def health(self) -> Json:
        """How things stand, good or bad."""
        told: Json = await self._call("GET", "/health", bad_is_fine=True)
        return told

    async def edges(self) -> list[Json]:
        """How each edge stands that is over the same directory as the one that answers."""
        told: Json = await self._call("GET", "/edges")
        return list(told["edges"])

    async def streams(self) -> list[Json]:
        """What flows out of these edges together, by stream."""
        told: Json = await self._call("GET", "/streams")
        return list(told["streams"])


# Inquiries: continuous queries, registered at an edge, seen and ended.


class ContinuousQueryOptions(TypedDict, total=False):
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


def registration_body(text: str, inquired: Mapping[str, Any]) -> Json:
    """What is sent for one."""
    return {"query": text, **{("from" if name == "begins" else name): each for name, each in inquired.items()}}


class ContinuousQueryClient(AdministrationClient):
    """Standing questions across events, but for their answers."""

    async def register(self, text: str, **inquired: Unpack[ContinuousQueryOptions]) -> Json:
        """The query that was registered: all that is published from now on counts for it, and what came since `begins`:
        `earliest`, a position, or a time."""
        made: Json = await self._call("POST", "/queries", json=registration_body(text, inquired))
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
