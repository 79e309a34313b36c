"""Who may do what: verbs, grants, and those who hold them; policies, and what they leave to be seen."""

from triplewire.access.documents import parse_policy
from triplewire.access.grants import Grant
from triplewire.access.policies import Permit, Policy, permit_of, sight_of
from triplewire.access.principals import EVERYONE, NOBODY, Principal
from triplewire.access.sights import Sight
from triplewire.access.verbs import Verb

__all__ = [
    "EVERYONE",
    "NOBODY",
    "Grant",
    "Permit",
    "Policy",
    "Principal",
    "Sight",
    "Verb",
    "parse_policy",
    "permit_of",
    "sight_of",
]
