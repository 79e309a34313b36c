"""Subscribing: standing questions, and the templates that they are made from."""

from __future__ import annotations

from triplewire.access import Verb
from triplewire.contract.operations import Operation

_SUBSCRIBE = (Verb.SUBSCRIBE,)
_ADMIN = (Verb.ADMIN,)
_SEE = (Verb.SUBSCRIBE, Verb.ADMIN)

MAKE = Operation("makeSubscription", "Make subscriptions", _SUBSCRIBE)
PAGE = Operation("listSubscriptions", "See subscriptions, a page at a time", _SEE)
FIND = Operation("findSubscription", "See a subscription", _SEE)
END = Operation("endSubscription", "End a subscription", _SEE)
EXPLAIN = Operation("explainSubscription", "See why a subscription matches an event, or not", _SEE)
DELIVER = Operation("deliver", "Listen to the notifications of a subscription", _SUBSCRIBE)
TEMPLATES = Operation("listTemplates", "See the templates", _SEE)
FIND_TEMPLATE = Operation("findTemplate", "See a template", _SEE)
PUT_TEMPLATE = Operation("putTemplate", "Make or replace a template", _ADMIN)
REMOVE_TEMPLATE = Operation("removeTemplate", "Remove a template", _ADMIN)
