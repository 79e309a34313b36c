"""Filters with bags, which are matched clause by clause: to join all values with all elements would be too much."""

from triplewire.matching.bags.tables import BagTable, make_table

__all__ = ["BagTable", "make_table"]
