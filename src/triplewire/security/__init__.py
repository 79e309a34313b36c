"""Authentication and authorization: principals, grants, policies and row-level security."""

from triplewire.security.policy import Policy, PublishPermit, parse_policy, publish_permit_of, visibility_of
from triplewire.security.principals import EVERYONE, NOBODY, Grant, Principal, Verb
from triplewire.security.visibility import Visibility

__all__ = [
    "EVERYONE",
    "NOBODY",
    "Grant",
    "Policy",
    "Principal",
    "PublishPermit",
    "Verb",
    "Visibility",
    "parse_policy",
    "publish_permit_of",
    "visibility_of",
]
