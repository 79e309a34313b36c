"""Windows: pieces of streams that a query is asked of, one after the other."""
