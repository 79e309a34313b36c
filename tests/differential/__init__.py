"""Generated data and generated queries over the whole grammar, answered by pyoxigraph and by us."""
