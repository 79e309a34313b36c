"""Governing: the policy on who sees what, and who may publish what."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract.operations import Content, Operation, Parameter

TOML = "application/toml"
_ADMIN = (Verb.ADMIN,)
_TEXT = Content({TOML: None, "text/plain": None}, "The policy, as TOML.")
_TOLD = Content({"application/json": None}, "Its version, and how many rules it has.")
_VERSION = Parameter("version", "A version that was in force once; without it, the one that is.")
_DRY_RUN = Parameter("dry_run", "1 checks the policy and leaves what is in force.", schema={"enum": ["0", "1"]})

FIND_POLICY = Operation(
    "findPolicy",
    "Read the policy in force",
    _ADMIN,
    parameters=(_VERSION,),
    answers={200: Content({TOML: None})},
    problems=(400, 404),
)
LOAD_POLICY = Operation(
    "loadPolicy",
    "Load a policy in place of what is in force",
    _ADMIN,
    description="It is checked first. Events from the version's position on are matched under it; whatever is read "
    "from then on is read under it.",
    parameters=(_DRY_RUN,),
    body=_TEXT,
    answers={200: _TOLD},
    problems=(400, 413, 415),
)
REMOVE_POLICY = Operation(
    "removePolicy", "Have no policy from now on", _ADMIN, answers={204: Content({})}, problems=(404,)
)
POLICY_VERSIONS = Operation("listPolicyVersions", "See all versions of the policy", _ADMIN, answers={200: _TOLD})
