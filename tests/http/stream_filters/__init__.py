"""Filters at the door."""
