"""Matching: subscriptions against events, a whole batch at a time."""
