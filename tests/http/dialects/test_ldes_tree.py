"""The way from the first node to any leaf."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from triplewire.http.dialects import ldes
from triplewire.http.dialects.ldes import HistoryTree, TreeNode
from triplewire.storage.log import ports
from triplewire.storage.log.ports import Segment, StreamVolume


def tree(count: int, *, open: bool, rough: int = -1, fanout: int = ldes.LDES_FANOUT) -> HistoryTree:
    """Over so many leaves of ten positions each; the last of them may be open."""
    closed = count - open
    last = leaf(closed) if open else None
    return HistoryTree(StreamVolume("s", closed=closed, open=last, unordered=rough), fanout)


def leaf(number: int) -> Segment:
    return Segment(number, ((10 * number + 1, 10 * number + 10),), 100 * number, 100 * number + 99)


def leaves(numbers: Sequence[int]) -> list[Segment]:
    return [leaf(number) for number in numbers]


def reached(made: HistoryTree, lost: int = 0) -> dict[int, int]:
    """The leaves that are found from the root, with the steps that it takes."""
    found: dict[int, int] = {}
    now, steps = [made.root], 0
    while now:
        steps += 1
        following = [branch.node for node in now for branch in made.branches(node, leaves, lost)]
        found |= {node.number: steps for node in following if node.level == 0}
        now = [node for node in following if node.level]
    return found


@given(count=st.integers(1, 120), open=st.booleans(), lost=st.sampled_from([0, 0, 9, 10, 55, 5_000]))
@settings(max_examples=80, deadline=None)
def test_each_leaf_that_is_kept_is_found_in_few_steps(count: int, open: bool, lost: int) -> None:
    made = tree(count, open=open, fanout=4)
    found = reached(made, lost)
    assert sorted(found) == [number for number in range(count) if leaf(number).last > lost]
    steps = max(1, next(level for level in range(9) if 4**level >= count))
    assert set(found.values()) <= {steps}
    assert all(made.has(TreeNode(0, number)) for number in range(count))
    assert not made.has(TreeNode(0, count))


@given(count=st.integers(1, 120), open=st.booleans())
@settings(max_examples=40, deadline=None)
def test_bounds_hold_for_all_below_and_complete_nodes_stay(count: int, open: bool) -> None:
    made, later = tree(count, open=open, fanout=3), tree(200, open=False, fanout=3)
    nodes = [made.root]
    for node in nodes:
        branches = made.branches(node, leaves, 0)
        nodes += [branch.node for branch in branches if branch.node.level]
        for branch in branches:
            first = branch.node.number * 3**branch.node.level
            assert branch.since == leaf(first).since
            assert (branch.until is not None) == made.is_complete(branch.node)
            assert branch.until in (None, leaf(made.last(branch.node)).until)
        if node != made.root and made.is_complete(node):
            assert later.branches(node, leaves, 0) == branches


def test_where_the_clock_went_back_nothing_is_said_of_times() -> None:
    branches = tree(4, open=False, rough=2).branches(TreeNode(1, 0), leaves, 0)
    assert [(branch.since, branch.until) for branch in branches] == [(None, None)] * 3 + [(300, 399)]


def test_an_hour_at_a_thousand_a_second_is_two_steps_away() -> None:
    count = 3_600 * 1_000 // ports.SEGMENT_EVENTS
    made = tree(count, open=True)
    assert made.root.level == 2
    assert len(made.branches(made.root, leaves, 0)) == count // ldes.LDES_FANOUT
