"""Subscriptions' notifications over sockets, with matches written as the pipeline writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.http.harness import body, data, house, run
from triplewire.http.formats.notifications import MATCH_LIMITS, MatchSelector, group_matches
from triplewire.matching.index import Membership
from triplewire.matching.index.programs import Opcode
from triplewire.model import END, MATCHES, Kind, LimitReached, format_position
from triplewire.sparql import parse_query
from triplewire.storage.log.ports import LogRetention
from triplewire.testing.samples import event


@pytest.mark.parametrize("kind", list(Kind))
def test_each_kind_carries_what_it_should(kind: Kind) -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe(kind)
            (position,) = at.append(7)
            at.match([(position, made.since, [0, 1] if kind is Kind.BINDINGS else None)])
            async with at.listen("/subscriptions/s1/notifications") as ear:
                message = await ear.next()
        told = data(message)
        assert (message.event, message.id) == ("notification", format_position(position))
        assert {name: told.pop(name) for name in ("subscription", "kind", "position", "event", "stream")} == {
            "subscription": "s1",
            "kind": kind.value,
            "position": format_position(position),
            "event": "http://example.org/event/7",
            "stream": "test",
        }
        assert told.pop("time") == "2023-11-14T22:13:20Z"
        assert (
            told
            == {
                Kind.SIGNAL: {},
                Kind.EVENT: {"format": "application/n-quads", "body": body(event(7)).decode()},
                Kind.BINDINGS: {
                    "results": {
                        "head": {"vars": ["o", "v"]},
                        "results": {
                            "bindings": [
                                {
                                    "o": {"type": "uri", "value": "http://example.org/observation/7"},
                                    "v": {
                                        "type": "literal",
                                        "value": "7",
                                        "datatype": "http://www.w3.org/2001/XMLSchema#double",
                                    },
                                }
                            ]
                        },
                    }
                },
            }[kind]
        )

    run(scene())


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("reached", list(LimitReached))
def test_a_limit_that_was_reached_is_told_in_the_place_of_what_was_asked_for(kind: Kind, reached: LimitReached) -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe(kind)
            (position,) = at.append(7)
            row = {"position": position, "subscription": made.since, "limit": reached.value}
            at.write(pa.Table.from_pylist([row], schema=MATCHES))
            async with at.listen("/subscriptions/s1/notifications") as ear:
                message = await ear.next()
        told = data(message)
        assert (message.event, message.id) == ("notification", format_position(position))
        assert told["limit"] == {"reached": reached.value, "most": MATCH_LIMITS[reached]}
        assert not {"results", "graph", "body"} & told.keys()

    run(scene())


def test_what_a_construct_builds_is_carried_as_a_graph() -> None:
    async def scene() -> None:
        async with house() as at:
            query = parse_query("CONSTRUCT { ?o <urn:saw> ?v } WHERE { ?o <http://example.org/result> ?v }")
            made = at.subscribe(Kind.BINDINGS, query=query)
            (position,) = at.append(7)
            at.match([(position, made.since, [1])])
            async with at.listen("/subscriptions/s1/notifications") as ear:
                told = data(await ear.next())
        assert (told["format"], told["graph"]) == (
            "application/n-triples",
            '<http://example.org/observation/7> <urn:saw> "7"^^<http://www.w3.org/2001/XMLSchema#double> .\n',
        )

    run(scene())


def test_nothing_is_lost_between_subscribing_and_listening_and_then_it_goes_on_live() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            positions = [*at.append(1, 2, 3)]
            at.match([(position, made.since, None) for position in positions])
            async with at.listen("/subscriptions/s1/notifications") as ear:
                early = await ear.take(3)
                positions += at.append(4)
                at.match([(positions[-1], made.since, None)])
                late = await ear.take(1)
            assert [message.id for message in early + late] == [format_position(position) for position in positions]

    run(scene())


def test_who_asks_from_now_on_gets_no_past() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            (old,) = at.append(1)
            at.match([(old, made.since, None)])
            async with at.listen("/subscriptions/s1/notifications?after=now") as ear:
                await ear.position()
                (new,) = at.append(2)
                at.match([(new, made.since, None)])
                assert (await ear.next()).id == format_position(new)

    run(scene())


def test_who_resumes_gets_what_came_later() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            for number in range(5):
                at.match([(position, made.since, None) for position in at.append(number)])
            asked = format_position(made.since + 2)
            async with at.listen("/subscriptions/s1/notifications", Last_Event_ID=asked) as ear:
                assert [message.id for message in await ear.take(3)] == [
                    format_position(made.since + n) for n in (3, 4, 5)
                ]

    run(scene())


def test_a_batch_is_shared_out_among_subscriptions_each_in_order() -> None:
    async def scene() -> None:
        async with house() as at:
            one, two = at.subscribe(id="one"), at.subscribe(Kind.EVENT, id="two")
            at.subscribe(id="nobody")
            async with (
                at.listen("/subscriptions/one/notifications") as first,
                at.listen("/subscriptions/one/notifications") as again,
                at.listen("/subscriptions/two/notifications") as second,
            ):
                for ear in (first, again, second):
                    await ear.position()
                a, b, c = at.append(1, 2, 3)
                at.match([(c, one.since, None), (b, two.since, None), (a, one.since, None), (c, two.since, None)])
                assert [message.id for message in await first.take(2)] == [format_position(a), format_position(c)]
                assert [message.id for message in await again.take(2)] == [format_position(a), format_position(c)]
                assert [message.id for message in await second.take(2)] == [format_position(b), format_position(c)]

    run(scene())


def test_the_end_comes_after_all_that_was_before_it() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            async with at.listen("/subscriptions/s1/notifications") as ear:
                await ear.position()
                (before,) = at.append(1)
                at.end("s1")
                at.append(2)
                await at.edge.matches.step()
                at.match([(before, made.since, None)])
                heard = await ear.rest()
            assert [(message.event, message.id) for message in heard] == [
                ("notification", format_position(before)),
                ("end", format_position(before)),
            ]
            found = await at.problem("GET", "/subscriptions/s1/notifications")
            assert found["status"] == 404

    run(scene())


def test_an_end_with_nothing_left_to_match_needs_no_batch() -> None:
    async def scene() -> None:
        async with house() as at:
            at.subscribe()
            async with at.listen("/subscriptions/s1/notifications") as ear:
                await ear.position()
                at.end("s1")
                assert [message.event for message in await ear.rest()] == ["end"]

    run(scene())


def test_who_comes_back_after_the_end_still_gets_the_rest() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            async with at.listen("/subscriptions/s1/notifications") as ear:
                asked = await ear.position()
            position = at.append(1)[0]
            at.end("s1")
            at.match([(position, made.since, None)])
            async with at.listen("/subscriptions/s1/notifications", Last_Event_ID=str(asked)) as ear:
                assert [message.event for message in await ear.rest()] == ["notification", "end"]

    run(scene())


def test_a_match_whose_event_was_trimmed_is_told_as_a_gap() -> None:
    async def scene() -> None:
        async with house() as at:
            made = at.subscribe()
            (old,) = at.append(1)
            at.match([(old, made.since, None)])
            at.twin.clock.advance(100)
            (new,) = at.append(2)
            at.match([(new, made.since, None)])
            at.twin.log.trim(LogRetention(age=50), before=100)
            async with at.listen("/subscriptions/s1/notifications") as ear:
                assert [message.event for message in await ear.take(2)] == ["gap", "notification"]

    run(scene())


def test_grouping_drops_what_nobody_wants_and_orders_the_rest() -> None:
    rows = [(5, 1), (3, 2), (4, 1), (9, 3), (3, 1)]
    table = pa.Table.from_pylist([{"position": p, "subscription": s} for p, s in rows], schema=MATCHES)
    wanted = [MatchSelector(since, END, None) for since in (1, 3, 8)]
    found = [(group.since, group.positions, group.rows) for group in group_matches(table, wanted)]
    assert found == [(1, [3, 4, 5], [[4], [2], [0]]), (3, [9], [[3]])]
    assert list(group_matches(table, ())) == []
    assert list(group_matches(table.slice(0, 0), wanted)) == []


def test_members_of_a_group_hear_what_passes_their_threshold_while_they_hold() -> None:
    rows = [(5, 7, 20.0), (5, 7, 40.0), (6, 7, 30.0), (6, 8, 99.0), (9, 7, 50.0)]
    table = pa.Table.from_pylist([{"position": p, "group": g, "value": v} for p, g, v in rows], schema=MATCHES)
    members = {
        since: Membership(7, (), limit, op) for since, limit, op in ((1, 25.0, Opcode.GREATER), (2, 30.0, Opcode.LESS))
    }
    wanted = [MatchSelector(1, 9, members[1]), MatchSelector(2, END, members[2]), MatchSelector(5, END, members[1])]
    found = {group.since: (group.positions, group.rows) for group in group_matches(table, wanted)}
    assert found == {1: ([5, 6], [[1], [2]]), 2: ([5], [[0]]), 5: ([6, 9], [[2], [4]])}


def test_what_somebody_else_decided_stands_between_the_matches_of_a_group() -> None:
    rows = [(5, 7, None), (6, None, 3), (8, 7, None)]
    columns = [{"position": p, "group": g, "value": 0.0 if g else None, "subscription": s} for p, g, s in rows]
    table = pa.Table.from_pylist(columns, schema=MATCHES)
    (found,) = group_matches(table, [MatchSelector(3, END, Membership(7, ()))])
    assert (found.positions, found.rows) == ([5, 6, 8], [[0], [1], [2]])
