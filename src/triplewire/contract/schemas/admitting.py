"""Admitting: tokens, as they are ordered and told of."""

from __future__ import annotations

from triplewire.config import limits
from triplewire.contract.schemas.forms import STRING, TIME, Schema, maybe, one_of, record, ref, some

_TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": limits.TOKEN_CHARACTERS}
_GRANT: Schema = {
    "type": "string",
    "pattern": r"^(\*|admin|(publish|consume|subscribe|query)(:[A-Za-z0-9._~-]*\*?)?)$",
    "examples": ["publish:home", "consume:city-*", "query", "admin", "*"],
}
_LIFETIME: Schema = {"type": "string", "pattern": "^[1-9][0-9]{0,5}[smhdw]$", "examples": ["30d"]}
_TOLD: dict[str, Schema] = {
    "id": STRING,
    "name": STRING,
    "allow": some(STRING),
    "roles": some(STRING),
    "state": one_of(("good", "expired", "revoked")),
    "created": TIME,
    "expires": maybe(TIME),
    "revoked": maybe(TIME),
}

ADMITTING: dict[str, Schema] = {
    "TokenOrder": record(
        {"name": _TEXT, "allow": some(_GRANT, 1, limits.TOKEN_GRANTS // 2)},
        optional={"roles": some(_TEXT, most=limits.TOKEN_GRANTS // 2), "expires": _LIFETIME},
        closed=True,
        about="A token that somebody wants: what for, what it lets do, and for how long.",
    ),
    "Token": record(_TOLD, about="A token, without its secret."),
    "NewToken": record({**_TOLD, "token": STRING}, about="A token that was just made, with its text."),
    "Tokens": record({"tokens": some(ref("Token"))}),
}
