"""Admitting: the tokens by which people are known."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract import parameters as with_
from triplewire.contract.operations import Content, Operation

JSON = "application/json"
_ADMIN = (Verb.ADMIN,)
_ID = (with_.path("id", "The id of the token, which is no secret", {"type": "string", "pattern": "^[a-z0-9]{10}$"}),)

CREATE_TOKEN = Operation(
    "createToken",
    "Make a token",
    _ADMIN,
    description="No other answer ever has the token itself. The first one that is made closes the door.",
    body=Content({JSON: "TokenOrder"}),
    answers={201: Content({JSON: "NewToken"}, "It is good from now on", headers=("Location",))},
    problems=(400, 409, 413, 415, 422, 507),
)
TOKENS = Operation(
    "listTokens", "See the tokens, without their secrets", _ADMIN, answers={200: Content({JSON: "Tokens"})}
)
FIND_TOKEN = Operation(
    "findToken",
    "See a token, without its secret",
    _ADMIN,
    parameters=_ID,
    answers={200: Content({JSON: "Token"})},
    problems=(404,),
)
REVOKE_TOKEN = Operation(
    "revokeToken",
    "Revoke a token, and send away who came in by it",
    _ADMIN,
    parameters=_ID,
    answers={204: Content(description="It is good for nothing, at every edge")},
    problems=(404, 507),
)
