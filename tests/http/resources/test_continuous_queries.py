"""Continuous queries over the registry: what becomes of what is asked for, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from triplewire.continuous.join_network.layout import SLOTS
from triplewire.continuous.structures import STRUCTURE
from triplewire.http.resources.continuous_queries import ContinuousQueryManager
from triplewire.http.resources.query_requests import ContinuousQueryRequest
from triplewire.http.resources.subscription_requests import BackfillStarts
from triplewire.model.errors import (
    Forbidden,
    InvalidField,
    NotFound,
    SparqlSyntax,
    StorageFull,
    TriplewireError,
    Unavailable,
    Unsupported,
)
from triplewire.model.subscriptions import ContinuousQuery, LatePolicy, TimeDomain
from triplewire.security import EVERYONE, Policy, Principal, parse_policy
from triplewire.storage.log.ports import Publication
from triplewire.storage.registry.security import PolicyListeners, PolicyStore
from triplewire.storage.registry.subscriptions import QUERY
from triplewire.testing import TWIN_KINDS, Twin, event, open_twin

PLAIN = "SELECT ?car {{ ?car <urn:at> <urn:{0}> . ?car <urn:seen> {1} }}"
MADE = "CONSTRUCT { ?a <urn:met> ?b } WHERE { ?a <urn:at> ?p . ?b <urn:at> ?p }"
WINDOWED = """REGISTER RSTREAM <hot> AS
SELECT ?s (AVG(?v) AS ?mean) FROM NAMED WINDOW <w> ON <home> [RANGE PT10M STEP PT1M]
WHERE { WINDOW <w> { ?s <urn:value> ?v } } GROUP BY ?s"""
BESIDE = """REGISTER RSTREAM <hot> AS
SELECT ?s ?room FROM NAMED WINDOW <w> ON <home> [RANGE PT10M]
WHERE { WINDOW <w> { ?s <urn:value> ?v } ?s <urn:in> ?room }"""


@pytest.fixture(params=TWIN_KINDS)
def stores(request: pytest.FixtureRequest) -> Iterator[Twin]:
    with open_twin(request.param) as made:
        made.log.append([Publication("home", [event(1)]), Publication("street", [event(2)])])
        yield made


def service(stores: Twin) -> ContinuousQueryManager:
    numbers = count(1)
    return ContinuousQueryManager(
        stores.registry,
        stores.clock,
        lambda stream: stores.log.volume(stream) is not None,
        new_id=lambda: f"q{next(numbers)}",
        starts=BackfillStarts(stores.log, stores.clock),
    )


def inquiry(text: str, **fields: Any) -> ContinuousQueryRequest:  # noqa: ANN401
    return ContinuousQueryRequest.from_json(
        {"query": text, **{name.rstrip("_"): each for name, each in fields.items()}}
    )


def registered(stores: Twin, text: str, **fields: Any) -> ContinuousQuery:  # noqa: ANN401
    (made,) = service(stores).register([inquiry(text, **fields)])
    return made


def test_those_that_ask_the_same_are_one_group_whoever_parsed_them(stores: Twin) -> None:
    texts = [PLAIN.format("a", 1), PLAIN.format("b", 2), PLAIN.format("a", 1), PLAIN.format("a", '"1"')]
    made = service(stores).register([inquiry(each) for each in texts])
    again = registered(stores, texts[1])
    assert made[0].group == made[2].group
    assert len({each.group for each in (*made, again)}) == 3
    assert again.group == made[1].group
    assert {each.structure for each in made} == {entry.key for entry in stores.registry.list(STRUCTURE)}
    assert made[1].constants == ("<urn:b>", '"2"^^<http://www.w3.org/2001/XMLSchema#integer>')
    assert [each.variables for each in made] == [("car",)] * 4
    assert [each.since for each in made] == sorted(each.since for each in made)


def test_what_narrows_a_query_tells_it_from_others(stores: Twin) -> None:
    text = PLAIN.format("a", 1)
    said: list[dict[str, Any]] = [{}, {"streams": ["home"]}, {"within": 5}, {"span": 9}, {"semantics": "set"}]
    made = [registered(stores, text, **each) for each in said]
    assert len({each.group for each in made}) == len(said)
    assert [each.distinct for each in made] == [False, False, False, False, True]


def test_it_is_found_as_it_was_registered_listed_and_ended(stores: Twin) -> None:
    queries = service(stores)
    made = queries.register(
        [
            inquiry(PLAIN.format("a", 1), streams=["home"], within="PT1M", from_="earliest", name="x y"),
            inquiry(WINDOWED, time="event", lateness=5, late="revise"),
        ]
    )
    assert [queries.find(each.id) for each in made] == made
    assert (made[0].begins, made[0].within, made[0].into, made[0].name) == (0, 60.0, None, "x y")
    assert (made[1].into, made[1].time, made[1].late, made[1].windowed) == (
        "hot",
        TimeDomain.EVENT,
        LatePolicy.REVISE,
        True,
    )
    first = queries.page(limit=1)
    assert (first.items, first.next) == (made[:1], made[0].since)
    assert queries.page(after=made[0].since).items == made[1:]
    queries.end(made[0].id)
    with pytest.raises(NotFound, match=made[0].id):
        queries.find(made[0].id)
    with pytest.raises(NotFound):
        queries.end(made[0].id)


@pytest.mark.parametrize(
    ("text", "fields", "into"),
    [
        (WINDOWED, {}, "hot"),
        (WINDOWED, {"into": "other"}, "other"),
        (WINDOWED, {"name": "http://example.org/streams/hot"}, "hot"),
        (MADE, {"streams": ["home"]}, "query-q1"),
        (MADE, {"streams": ["home"], "name": "urn:x/met"}, "met"),
        (MADE, {"streams": ["home"], "name": "met", "into": "there"}, "there"),
        (PLAIN.format("a", 1), {"name": "met"}, None),
        ("ASK { ?s <urn:p> ?o }", {}, None),
    ],
)
def test_answers_go_to_a_stream_that_is_called_like_the_query(
    stores: Twin, text: str, fields: dict[str, Any], into: str | None
) -> None:
    assert registered(stores, text, **fields).into == into


@pytest.mark.parametrize(
    ("text", "fields", "field"),
    [
        (WINDOWED, {"within": 5}, "within"),
        (WINDOWED, {"span": 5}, "span"),
        (WINDOWED, {"semantics": "set"}, "semantics"),
        (WINDOWED, {"streams": ["home"]}, "streams"),
        (WINDOWED, {"from": "earliest"}, "from"),
        (WINDOWED, {"name": "cold"}, "name"),
        (MADE, {"name": "two words", "streams": ["home"]}, "name"),
        (PLAIN.format("a", 1), {"time": "event"}, "time"),
        (PLAIN.format("a", 1), {"lateness": 5}, "lateness"),
        (PLAIN.format("a", 1), {"late": "drop"}, "late"),
        (PLAIN.format("a", 1), {"into": "there"}, "into"),
        (PLAIN.format("a", 1), {"from": "00000000000000ff"}, "from"),
        (PLAIN.format("a", 1), {"streams": ["nowhere"]}, "streams"),
        (WINDOWED.replace("<home>", "<nowhere>"), {}, "query"),
        (WINDOWED, {"into": "home"}, "into"),
        (MADE, {}, "into"),
        (MADE, {"streams": ["home"], "into": "home"}, "into"),
    ],
)
def test_what_does_not_fit_is_named(stores: Twin, text: str, fields: dict[str, Any], field: str) -> None:
    head = stores.log.head()
    with pytest.raises(InvalidField) as raised:
        registered(stores, text, **fields)
    assert raised.value.field == field
    assert stores.log.head() == head


def test_a_stream_that_nobody_knows_is_told_with_its_place(stores: Twin) -> None:
    with pytest.raises(InvalidField, match="nowhere") as raised:
        registered(stores, WINDOWED.replace("ON <home>", "ON <http://example.org/streams/nowhere>"))
    assert str(raised.value.place) == "line 2, column 55"
    assert "^" in raised.value.excerpt


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ("FROM <http://example.org/streams/nowhere>", "nothing was ever published to nowhere"),
        ("FROM <http://example.org/ontologies/rooms>", "there is no ontology rooms"),
        ("FROM <http://example.org/streams/street>", None),
        ("FROM <urn:some:event>", None),
    ],
)
def test_what_stands_beside_windows_must_be_there(stores: Twin, beside: str, words: str | None) -> None:
    text = BESIDE.replace("FROM NAMED WINDOW", f"{beside}\nFROM NAMED WINDOW")
    if words is None:
        assert registered(stores, text).into == "hot"
        return
    with pytest.raises(InvalidField, match=words) as raised:
        registered(stores, text)
    assert raised.value.place is not None
    assert raised.value.place.line == 2


def test_a_window_is_asked_what_it_always_answers_alike(stores: Twin) -> None:
    text = WINDOWED.replace("?s <urn:value> ?v }", "?s <urn:value> ?v\nFILTER(?v < RAND()) }")
    with pytest.raises(Unsupported, match="RAND") as raised:
        registered(stores, text)
    assert raised.value.place is not None
    assert raised.value.place.line == 4


def test_what_another_query_publishes_into_is_known(stores: Twin) -> None:
    queries = service(stores)
    chained = WINDOWED.replace("<hot>", "<hotter>").replace("ON <home>", "ON <hot>")
    assert [each.into for each in queries.register([inquiry(WINDOWED), inquiry(chained)])] == ["hot", "hotter"]
    with pytest.raises(InvalidField, match="hot → query q2 → hotter → this query → hot"):
        queries.register([inquiry(WINDOWED.replace("ON <home>", "ON <hotter>"))])


def test_one_that_ends_takes_its_current_along(stores: Twin) -> None:
    queries = service(stores)
    (made,) = queries.register([inquiry(WINDOWED)])
    queries.end(made.id)
    with pytest.raises(InvalidField, match="nothing was ever published to hot"):
        registered(stores, WINDOWED.replace("<hot>", "<hotter>").replace("ON <home>", "ON <hot>"))


@pytest.mark.parametrize(
    ("where", "construct"),
    [
        ("{ ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x } }", "OPTIONAL"),
        ("{ { ?s <urn:p> ?o } UNION { ?s <urn:q> ?o } }", "UNION"),
        ("{ ?s <urn:p>/<urn:q> ?o . ?s <urn:p>* ?x }", "path `*`"),
        ("{ GRAPH ?g { ?s <urn:p> ?o } }", "GRAPH"),
        ("{ ?s <urn:p> ?o } ORDER BY ?o", "ORDER BY"),
        ("{ ?s <urn:p> ?o } LIMIT 5", "LIMIT"),
        ("{ ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> ?x } }", "EXISTS"),
        ("{ { SELECT ?s { ?s <urn:p> ?o } LIMIT 1 } }", "a sub-query"),
        ("{ ?s <urn:p> ?o MINUS { ?s <urn:q> ?x } }", "MINUS"),
        ("{ }", "a query without a triple pattern"),
    ],
)
def test_what_only_windows_can_be_asked_is_named_with_its_place(stores: Twin, where: str, construct: str) -> None:
    with pytest.raises(Unsupported, match="in a window") as raised:
        registered(stores, f"SELECT *\n{where}")
    assert raised.value.construct == construct
    assert raised.value.place is not None
    assert raised.value.place.line == 2


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("SELECT ?s\n?x { ?s <urn:p> ?o }", "?x"),
        ("CONSTRUCT { ?s <urn:q>\n?x } WHERE { ?s <urn:p> ?o }", "?x"),
        ("SELECT ?s { ?s <urn:p> ?o FILTER(\nRAND() < 0.5) }", "function RAND"),
        ("# It makes nothing.\nCONSTRUCT { } WHERE { ?s <urn:p> ?o }", "CONSTRUCT"),
        ("SELECT ?s { ?s <urn:p> ?o FILTER(?o < \nnow()) }", "function NOW"),
    ],
)
def test_what_is_never_anything_or_never_the_same_is_refused(stores: Twin, text: str, construct: str) -> None:
    with pytest.raises(Unsupported) as raised:
        registered(stores, text, streams=["home"])
    assert raised.value.construct == construct
    assert raised.value.place is not None
    assert raised.value.place.line == 2


def test_a_query_holds_so_many_terms(stores: Twin) -> None:
    """Rows of the network have a fixed number of places: variables and constants together."""
    chain = " . ".join(f"?v{n} <urn:p> ?v{n + 1}" for n in range(SLOTS - 2))
    assert registered(stores, f"SELECT ?v0 {{ {chain} . ?v0 <urn:q> 1 }}").group is not None
    with pytest.raises(Unsupported, match=f"more than {SLOTS}"):
        registered(stores, f"SELECT ?v0 {{ {chain} . ?v0 <urn:q> 1, 2 }}")


def test_all_or_none_are_registered(stores: Twin) -> None:
    head = stores.log.head()
    with pytest.raises(SparqlSyntax):
        service(stores).register([inquiry(PLAIN.format("a", 1)), inquiry("SELECT")])
    assert stores.log.head() == head


def test_of_lines_each_is_for_itself_and_may_read_what_those_before_publish(stores: Twin) -> None:
    chained = WINDOWED.replace("<hot>", "<hotter>").replace("ON <home>", "ON <hot>")
    back = WINDOWED.replace("<hot>", "<home2>").replace("ON <home>", "ON <hotter>")
    circle = back.replace("<home2>", "<hot>")
    given: list[ContinuousQueryRequest | TriplewireError]
    given = [
        inquiry(WINDOWED),
        InvalidField("x", "bad"),
        inquiry(chained),
        inquiry(circle),
        inquiry(back),
        inquiry("SELECT"),
    ]
    told = service(stores).register_each(given)
    assert [isinstance(each, TriplewireError) for each in told] == [False, True, False, True, False, True]
    assert [each.key for each in stores.registry.list(QUERY)] == [each[0] for each in told if isinstance(each, tuple)]


class Full:
    """A registry that takes nothing."""

    def __init__(self, stores: Twin) -> None:
        registry = stores.registry
        self.get, self.list, self.changes = registry.get, registry.list, registry.changes

    def put(self, entries: object) -> list[int]:
        raise StorageFull("the disk is full")


def test_where_the_disk_is_full_each_has_that_error(stores: Twin) -> None:
    queries = ContinuousQueryManager(Full(stores), stores.clock, lambda stream: True)
    told = queries.register_each([inquiry(PLAIN.format("a", 1)), inquiry("SELECT")])
    assert [type(each) for each in told] == [StorageFull, SparqlSyntax]


ANNA = Principal.granted("anna", ["subscribe", "publish"])
BOB = Principal.granted("bob", ["subscribe"])
LOCAL = Principal.granted("carl", ["subscribe:home", "publish:mine"])
READER = Principal.granted("dora", ["subscribe", "publish", "query"])
OPEN = '[default]\nsee = "allow"\npublish = "allow"\n'


@pytest.mark.parametrize(
    ("by", "text", "fields", "words"),
    [
        (BOB, WINDOWED, {}, "publish"),
        (BOB, MADE, {"streams": ["home"]}, "publish"),
        (LOCAL, PLAIN.format("a", 1), {}, "name those that it reads"),
        (LOCAL, PLAIN.format("a", 1), {"streams": ["home", "street"]}, "may not see street"),
        (LOCAL, WINDOWED, {}, "publish"),
        (ANNA, BESIDE, {}, "query"),
        (ANNA, PLAIN.format("a", 1), {}, None),
        (BOB, PLAIN.format("a", 1), {}, None),
        (LOCAL, PLAIN.format("a", 1), {"streams": ["home"]}, None),
        (LOCAL, WINDOWED, {"into": "mine"}, None),
        (READER, BESIDE, {}, None),
    ],
)
def test_who_may_ask_what(stores: Twin, by: Principal, text: str, fields: dict[str, Any], words: str | None) -> None:
    queries = service(stores)
    if words is None:
        (made,) = queries.register([inquiry(text, **fields)], by)
        assert queries.find(made.id, by) == made
        return
    with pytest.raises(Forbidden, match=words):
        queries.register([inquiry(text, **fields)], by)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('[[see]]\nname = "r"\nwho = ["name:anna"]\ndeny.predicates = ["<urn:secret>"]\n', "hides some of it"),
        ('[[see]]\nname = "r"\nwho = ["name:anna"]\ndeny.streams = ["vault"]\n', "name those that it reads"),
    ],
)
def test_where_a_policy_hides_something_nobody_asks_across_events(stores: Twin, rule: str, words: str) -> None:
    PolicyStore(stores.registry).load(OPEN + rule)
    with pytest.raises(Forbidden, match=words):
        service(stores).register([inquiry(PLAIN.format("a", 1))], ANNA)
    assert service(stores).register([inquiry(PLAIN.format("a", 1))], BOB)


def test_a_policy_that_keeps_from_publishing_keeps_queries_from_it(stores: Twin) -> None:
    rule = '[[publish]]\nname = "r"\nwho = ["name:anna"]\ndeny.predicates = ["<urn:secret>"]\n'
    PolicyStore(stores.registry).load(OPEN + rule)
    with pytest.raises(Forbidden, match="publish all answers of a query"):
        service(stores).register([inquiry(WINDOWED)], ANNA)


def test_queries_of_those_who_see_less_by_a_new_policy_end_with_it(stores: Twin) -> None:
    queries = service(stores)
    mine = queries.register([inquiry(PLAIN.format("a", 1))], ANNA)
    others = queries.register([inquiry(WINDOWED)], READER)
    rule = '[[see]]\nname = "r"\nwho = ["name:anna"]\ndeny.predicates = ["<urn:secret>"]\n'
    policies = PolicyStore(stores.registry, PolicyListeners((queries,)))
    policies.load(OPEN)
    assert queries.find(mine[0].id) == mine[0]
    policies.load(OPEN + rule)
    with pytest.raises(NotFound):
        queries.find(mine[0].id)
    assert queries.find(others[0].id) == others[0]
    assert queries.page(by=ANNA).items == []


class Changing:
    """A registry in which the policy changes while a query is put."""

    def __init__(self, stores: Twin) -> None:
        self._stores = stores
        self.get, self.list, self.changes = stores.registry.get, stores.registry.list, stores.registry.changes

    def put(self, entries: Any) -> list[int]:  # noqa: ANN401
        made = self._stores.registry.put(entries)
        if any(kind == QUERY and value for kind, _, value in entries):
            PolicyStore(self._stores.registry).load(OPEN)
        return made


def test_who_registers_while_the_policy_changes_is_to_come_again(stores: Twin) -> None:
    queries = ContinuousQueryManager(Changing(stores), stores.clock, lambda stream: True)
    with pytest.raises(Unavailable, match="policy changed"):
        queries.register([inquiry(PLAIN.format("a", 1))])
    assert stores.registry.list(QUERY) == []


def test_those_of_others_are_not_there(stores: Twin) -> None:
    queries = service(stores)
    (made,) = queries.register([inquiry(PLAIN.format("a", 1))], ANNA)
    for call in (queries.find, queries.end):
        with pytest.raises(NotFound):
            call(made.id, BOB)
    assert queries.page(by=BOB).items == []
    assert queries.page(by=ANNA).items == queries.page(by=EVERYONE).items == [made]
    assert replace(made, owner=None) != made


def test_no_policy_is_no_reason_to_end_anything(stores: Twin) -> None:
    queries = service(stores)
    queries.register([inquiry(PLAIN.format("a", 1))], ANNA)
    nothing: Policy | None = None
    assert queries.following(nothing) == queries.following(parse_policy(OPEN)) == []
