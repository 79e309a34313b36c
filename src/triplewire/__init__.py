"""Triplewire: a semantic event broker."""
