"""Filters with bags: matched by a way of their own, because to pair everything with everything is too much."""

from triplewire.matching.bags.tables import BagTable, make_table

__all__ = ["BagTable", "make_table"]
