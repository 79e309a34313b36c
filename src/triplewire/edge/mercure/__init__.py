"""Mercure: streams for those who speak its protocol."""
