"""How events come in: what requests say, the items of bodies, and what publishers are told."""
