"""Ongoing: questions across events, answered as pieces arrive."""
