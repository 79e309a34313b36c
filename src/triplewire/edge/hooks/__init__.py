"""Hooks: those who are told by POST, and do not have to listen."""
