"""Linked Data Event Streams: the history of each stream as linked pages that can be cached."""
