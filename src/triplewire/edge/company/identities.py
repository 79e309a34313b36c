"""Identities: by what an edge is known to relays, which must not bring it what came from it."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from aiohttp import web

HEADER = "Edge-Id"


def new_identity() -> str:
    return token_hex(8)


def identity_of(path: Path) -> str:
    """The identity that a data directory keeps in a file, which the first who asks makes. Edges that share the
    directory share its log, and so they are one to everybody else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.{new_identity()}")
    made.write_text(new_identity())
    try:
        # A link is made only where there is none yet, and what it names is whole.
        path.hardlink_to(made)
    except FileExistsError:
        pass
    finally:
        made.unlink()
    return path.read_text().strip()


def tell(app: web.Application, identity: str) -> None:
    """Let every answer of an application say whose it is."""

    async def say(request: web.Request, response: web.StreamResponse) -> None:
        response.headers[HEADER] = identity

    app.on_response_prepare.append(say)
