"""Whether a deployment keeps what is promised, found out over HTTP alone, by whoever can reach it."""
