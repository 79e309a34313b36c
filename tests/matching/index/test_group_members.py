"""Members of groups are found by what matches, as if each were asked by itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from triplewire.matching.index import Membership
from triplewire.matching.index.memberships import GroupMembers
from triplewire.matching.index.programs import Opcode

OPS = (None, Opcode.GREATER, Opcode.GREATER_EQUAL, Opcode.LESS, Opcode.LESS_EQUAL)
NUMBERS = st.integers(-3, 3).map(float)
MEMBERS = st.lists(st.builds(Membership, st.integers(1, 3), st.just(()), NUMBERS, st.sampled_from(OPS)), max_size=12)
MATCHES = st.lists(st.tuples(st.integers(1, 4), NUMBERS | st.just(float("nan"))), max_size=8)


@given(MEMBERS, st.sets(st.integers(0, 11)), MATCHES)
def test_members_are_found_as_if_each_were_asked(
    members: list[Membership], removed: set[int], matches: list[tuple[int, float]]
) -> None:
    known = GroupMembers()
    for number, each in enumerate(members):
        known.add(number, each)
    for number in removed & {*range(len(members))}:
        known.remove(number, members[number])
    groups = np.array([group for group, _ in matches], np.int64)
    values = np.array([value for _, value in matches], np.float64)
    found = known.find(groups, values)
    left = {number: each for number, each in enumerate(members) if number not in removed}
    concerned = {n for n, each in left.items() if each.concerns(values[groups == each.group]).any()}
    assert concerned <= found <= {*left}
    # A member whose threshold equals a value may be found though it is not concerned; no other one is.
    for number in found - concerned:
        assert left[number].threshold in values[groups == left[number].group]


def test_no_other_member_of_a_large_group_is_touched() -> None:
    known = GroupMembers()
    for number in range(10_000):
        known.add(number, Membership(7, (), float(number), Opcode.GREATER))
    assert known.find(np.array([7, 8]), np.array([2.5, 99.0])) == {0, 1, 2}
