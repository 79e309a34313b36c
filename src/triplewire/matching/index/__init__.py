"""The index: the fast tier of matching, which decides conjunctions of patterns and simple filters by itself."""

from triplewire.matching.index.memberships import Guards, Membership, Memberships

__all__ = ["Guards", "Membership", "Memberships"]
