"""Discovery: what streams there are, what is in them, and how to listen, for people and for machines."""
