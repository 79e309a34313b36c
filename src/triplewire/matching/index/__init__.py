"""The index: the fast tier of matching, which decides the common fragment by itself.

Who only tells which matches concern a subscription needs no compiled code: `groups`, which does, is not imported here.
"""

from triplewire.matching.index.memberships import Guards, Membership, Memberships

__all__ = ["Guards", "Membership", "Memberships"]
