"""What there is to tell: the feeds of events and matches, and the tails that move them."""
