"""The index: the fast tier of matching, which decides the common fragment by itself."""

from triplewire.matching.index.groups import GroupIndex, Result
from triplewire.matching.index.memberships import Membership, Memberships

__all__ = ["GroupIndex", "Membership", "Memberships", "Result"]
