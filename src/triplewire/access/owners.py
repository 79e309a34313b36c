"""Owners: who made a subscription, as it is kept with it."""

from __future__ import annotations

from triplewire.access.principals import EVERYONE, Principal
from triplewire.access.verbs import Verb
from triplewire.model.subscriptions import Owner


def owner_of(principal: Principal) -> Owner | None:
    """How it is kept who made a subscription; None for everyone."""
    if principal == EVERYONE:
        return None
    return Owner(principal.name, tuple(sorted(map(str, principal.grants))), tuple(sorted(principal.roles)))


def principal_of(owner: Owner | None) -> Principal:
    return EVERYONE if owner is None else Principal.granted(owner.name, owner.grants, owner.roles)


def may_see(principal: Principal, owner: Owner | None) -> bool:
    """Whether a subscription of an owner is there for somebody: for whom it belongs to, by their name, and for those
    who look after everything."""
    return principal.may(Verb.ADMIN) or owner is None or owner.name == principal.name
