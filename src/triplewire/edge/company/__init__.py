"""Edges among others: neighbours on one port, repeaters elsewhere, and how to leave."""
