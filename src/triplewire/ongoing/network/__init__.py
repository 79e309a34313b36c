"""The network of joins: patterns of all queries as rows, common beginnings evaluated once."""
