"""Continuous queries: registering, seeing and ending them. Pure over the registry port; it blocks, so call it from a
thread.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triplewire.access import EVERYONE, Policy, Principal, Verb
from triplewire.access.owners import may_see, owner_of
from triplewire.config import limits
from triplewire.continuous.structures import STRUCTURE, QueryStructure, group_query
from triplewire.control import admissions, windows
from triplewire.control.beginnings import Beginnings
from triplewire.control.currents import Current, Currents, Reads
from triplewire.control.inquiries import UNBOUNDED, WINDOWED, Inquiry
from triplewire.control.pages import Page, paged
from triplewire.control.structures import Structures
from triplewire.model import START
from triplewire.model.clock import Clock
from triplewire.model.errors import (
    BadRequest,
    Forbidden,
    InputError,
    InvalidField,
    NotFound,
    QueryLimit,
    TriplewireError,
    Unavailable,
)
from triplewire.model.subscriptions import ContinuousQuery, query_to_value
from triplewire.sparql.rspql import Registration, parse_registration
from triplewire.storage.registry.ports import Registry
from triplewire.storage.registry.security import PolicyStore, PolicyVersion
from triplewire.storage.registry.streams import check_stream_name
from triplewire.storage.registry.subscriptions import QUERY, queries_owned_by, queries_publishing_to, query_from_change

Entry = tuple[str, str, Mapping[str, Any] | None]
Figures = Callable[[str], Mapping[str, Any] | None]

_WINDOW = re.compile(r"\bWINDOW\b", re.IGNORECASE)
"""Without this word there are none, and a query need not be parsed to know it."""


class Queries:
    """The standing questions across events, as the registry holds them."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        published: Callable[[str], bool],
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
        beginnings: Beginnings | None = None,
        figures: Figures = lambda id: None,
    ) -> None:
        """`published` tells whether anything ever was published to a stream, `figures` what the pipeline says of a
        query. Without `beginnings` no query may ask for the past."""
        self.figures = figures
        self._registry = registry
        self._clock = clock
        self._new_id = new_id
        self._beginnings = beginnings
        self._policies = PolicyStore(registry)
        self._currents = Currents(registry, published)
        self._structures = Structures()
        self._known: set[str] = set()
        """Keys of some structures that are in the registry, where they stay."""

    def register(self, inquiries: Sequence[Inquiry], by: Principal = EVERYONE) -> list[ContinuousQuery]:
        """All of them, or none: raises for the first that cannot be. Each counts every triple whose publish is answered
        after this returns."""
        once = self._once(by)
        drafts = [self._drafted(each, once) for each in inquiries]
        positions = self._registered(drafts, once)
        return [replace(each.query, since=at) for each, at in zip(drafts, positions, strict=True)]

    def register_each(
        self, inquiries: Sequence[Inquiry | TriplewireError], by: Principal = EVERYONE
    ) -> list[tuple[str, int] | TriplewireError]:
        """Those that can be, in one transaction: the id of each and its position; in the place of another is what is
        wrong with it. If the registry fails, none is registered, and each has that error."""
        once = self._once(by)
        drafts = [self._attempted(each, once) for each in inquiries]
        try:
            positions = iter(self._registered([each for each in drafts if isinstance(each, _Draft)], once))
        except TriplewireError as error:
            return [error if isinstance(each, _Draft) else each for each in drafts]
        return [(each.query.id, next(positions)) if isinstance(each, _Draft) else each for each in drafts]

    def find(self, id: str, by: Principal = EVERYONE) -> ContinuousQuery:
        """Raises NotFound for one that is not there or was ended, or is somebody else's."""
        change = self._registry.get(QUERY, id)
        found = None if change is None else query_from_change(change)
        if found is None or not may_see(by, found.owner):
            raise NotFound(f"there is no query {id}")
        return found

    def page(self, after: int = START, limit: int = limits.PAGE, by: Principal = EVERYONE) -> Page[ContinuousQuery]:
        """Those registered after a position, as far as they are there for who asks."""
        own = None if by.may(Verb.ADMIN) else queries_owned_by(by.name)
        changes, following = paged(self._registry, QUERY, own, after, limit)
        return Page([query_from_change(each) for each in changes], following)

    def end(self, id: str, by: Principal = EVERYONE) -> None:
        """From here on nothing counts for it. Raises NotFound for one that is not there, or is somebody else's."""
        self._registry.put(_ended(self.find(id, by)))

    def following(self, policy: Policy | None) -> list[Entry]:
        """What is to be put with a change of policy: those end whose owners no longer see all that they read, or may no
        longer publish what they find."""
        gone = (each for each in self._all() if not admissions.is_allowed(each, policy))
        return [entry for each in gone for entry in _ended(each)]

    def settle(self) -> int:
        """Nothing is left to do: who registers while the policy changes is told to come again."""
        return START

    def _all(self) -> Iterator[ContinuousQuery]:
        after: int = START
        while changes := self._registry.list(QUERY, after=after, limit=limits.BULK_LINES):
            yield from map(query_from_change, changes)
            after = changes[-1].position

    def _once(self, by: Principal) -> _Once:
        return _Once(by, self._policies.current(), self._currents.beside(), self._clock.now())

    def _attempted(self, inquiry: Inquiry | TriplewireError, once: _Once) -> _Draft | TriplewireError:
        try:
            return inquiry if isinstance(inquiry, TriplewireError) else self._drafted(inquiry, once)
        except (InputError, QueryLimit, NotFound, Forbidden) as error:
            return error

    def _drafted(self, inquiry: Inquiry, once: _Once) -> _Draft:
        registration = parse_registration(inquiry.text) if _WINDOW.search(inquiry.text) else None
        if registration is None or not registration.windows:
            draft = self._unbounded(inquiry, self._begun(inquiry, once))
        else:
            draft = self._windowed(inquiry, registration, self._begun(inquiry, once))
        once.admit(draft)
        return draft

    def _begun(self, inquiry: Inquiry, once: _Once) -> ContinuousQuery:
        """With what is as it was asked for."""
        return ContinuousQuery(
            id=self._new_id(),
            text=inquiry.text,
            name=inquiry.name,
            streams=inquiry.streams,
            within=inquiry.within,
            span=inquiry.span,
            time=inquiry.time,
            lateness=inquiry.lateness,
            late=inquiry.late,
            owner=owner_of(once.by),
            created=once.now,
        )

    def _unbounded(self, inquiry: Inquiry, query: ContinuousQuery) -> _Draft:
        _check_fields(inquiry, WINDOWED, "windows, and the query has none")
        taken, begins = self._structures.take(inquiry.text), self._begins(inquiry)
        if inquiry.into is not None and taken.form != "construct":
            raise InvalidField(
                "into", "solutions are listened to; what CONSTRUCT or windows find is published into a stream"
            )
        lifted = taken.lifted
        if inquiry.distinct and not lifted.structure.distinct:
            lifted = replace(lifted, structure=replace(lifted.structure, distinct=True))
        asked = group_query(lifted, streams=inquiry.streams, within=inquiry.within, span=inquiry.span, begins=begins)
        made = replace(
            query,
            group=asked.group,
            structure=asked.structure.key,
            constants=asked.constants,
            variables=() if taken.form == "construct" else asked.variables,
            distinct=asked.structure.distinct,
            into=_into(inquiry, query) if taken.form == "construct" else None,
            begins=begins,
        )
        return _Draft(made, inquiry.streams, structure=asked.structure)

    def _windowed(self, inquiry: Inquiry, registration: Registration, query: ContinuousQuery) -> _Draft:
        _check_fields(inquiry, UNBOUNDED, "a query without windows; these say it themselves")
        if registration.name is not None and inquiry.name is not None and _segment(inquiry.name) != registration.name:
            raise InvalidField(
                "name", f"the query registers itself as {registration.name}, and name says {inquiry.name}"
            )
        plan = windows.planned(inquiry.text, registration)
        if plan.background:
            dataset, published = registration.query.dataset, self._currents.published
            windows.check_background(inquiry.text, dataset, self._registry, published)
        named = replace(query, name=inquiry.name or registration.name)
        names = plan.names if plan.template is None else ()
        return _Draft(replace(named, into=_into(inquiry, named), variables=names), plan.streams, plan.background)

    def _begins(self, inquiry: Inquiry) -> int | None:
        if inquiry.begins is None:
            return None
        if self._beginnings is None:
            raise InvalidField("from", "from is not possible here: no events are kept")
        return self._beginnings.position(inquiry.begins)

    def _registered(self, drafts: Sequence[_Draft], once: _Once) -> list[int]:
        """The positions of the drafts, which are queries now."""
        structures = {each.structure.key: each.structure for each in drafts if each.structure is not None}
        missing = [*self._missing(structures)]
        entries = [*missing, *((QUERY, each.query.id, query_to_value(each.query)) for each in drafts)]
        beside = (entry for each in drafts for entry in each.beside())
        positions = self._registry.put([*entries, *beside])[len(missing) : len(entries)]
        self._remember(structures)
        try:
            self._check_again(drafts, once)
        except (Unavailable, InvalidField):
            # Nobody knows of them yet.
            self._registry.put([entry for each in drafts for entry in _ended(each.query)])
            raise
        return positions

    def _check_again(self, drafts: Sequence[_Draft], once: _Once) -> None:
        """What changed while they were registered may be against them."""
        if drafts and self._policies.current().version != once.enacted.version:
            raise Unavailable("the policy changed while the queries were registered; register them again")
        for each in drafts:
            self._currents.check(each.current)

    def _missing(self, structures: Mapping[str, QueryStructure]) -> Iterator[Entry]:
        for key, structure in structures.items():
            if key not in self._known and self._registry.get(STRUCTURE, key) is None:
                yield STRUCTURE, key, structure.to_value()

    def _remember(self, structures: Mapping[str, QueryStructure]) -> None:
        if len(self._known) > limits.REMEMBERED_SKELETONS:
            self._known = set()
        self._known |= structures.keys()


@dataclass(frozen=True)
class _Draft:
    """A query that is not registered yet, and what it reads."""

    query: ContinuousQuery
    reads: Reads
    background: bool = False
    """Whether it reads what is in no window."""
    structure: QueryStructure | None = None

    @property
    def current(self) -> Current:
        return Current(self.query.id, self.reads, self.query.into)

    def beside(self) -> Iterator[Entry]:
        """What is stored beside it, so that it is found."""
        if self.query.owner is not None:
            yield queries_owned_by(self.query.owner.name), self.query.id, {}
        if self.query.into is not None:
            yield queries_publishing_to(self.query.into), self.query.id, {"reads": self.reads}


@dataclass(frozen=True)
class _Once:
    """What is looked up once for many: who asks, by which policy, and what flows where."""

    by: Principal
    enacted: PolicyVersion
    currents: Currents
    now: int

    def admit(self, draft: _Draft) -> None:
        """Raises Forbidden for what they may not ask, Unfit for a stream that nobody knows and for a circle."""
        query, current = draft.query, draft.current
        admissions.check(self.by, self.enacted.policy, draft.reads, query.into, draft.background)
        self.currents.check(current)
        unknown = self.currents.unknown(current)
        if unknown is not None:
            raise windows.nowhere(query.text, unknown) if query.windowed else _unread(unknown)
        if query.into is not None:
            self.currents.fresh.append(current)


def _into(inquiry: Inquiry, query: ContinuousQuery) -> str:
    """The stream that is asked for, or called like the query."""
    return inquiry.into or (f"query-{query.id}" if query.name is None else _segment(query.name))


def _segment(name: str) -> str:
    """The last part of a name, as that of a stream. Raises Unfit."""
    try:
        return check_stream_name(re.split("[/#]", name)[-1])
    except BadRequest as error:
        raise InvalidField("name", f"what is found is published to the stream that name ends in, and {error}") from None


def _check_fields(inquiry: Inquiry, fields: Sequence[str], of: str) -> None:
    for name in fields:
        if name in inquiry.given:
            raise InvalidField(name, f"{name} is said of {of}")


def _unread(stream: str) -> InvalidField:
    return InvalidField("streams", f"nobody ever published to {stream}, and no other query does")


def _ended(query: ContinuousQuery) -> list[Entry]:
    owned: list[Entry] = [] if query.owner is None else [(queries_owned_by(query.owner.name), query.id, None)]
    into: list[Entry] = [] if query.into is None else [(queries_publishing_to(query.into), query.id, None)]
    return [(QUERY, query.id, None), *owned, *into]
